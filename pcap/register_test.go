package pcap_test

import _ "jobwire/catalog"
