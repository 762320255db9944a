package headers

import (
	"fmt"
	"strings"
)

// Header identifies a header that is not understood.
type Header struct {
	layer  string // what the number is: a link type, an EtherType, ...
	number uint32
}

// IsLink reports whether the header is that of the link.
func (h Header) IsLink() bool { return h.layer == linkType }

// String returns the number and, if it is known, the name of a header.
func (h Header) String() string {
	number := fmt.Sprint(h.number)
	if h.layer == etherType || h.layer == "PPP protocol" || h.layer == "GRE flags" {
		number = fmt.Sprintf("0x%04x", h.number)
	}
	if _, name, ok := strings.Cut(headerNames, "\n"+h.layer+" "+number+" "); ok {
		name, _, _ = strings.Cut(name, "\n")
		return fmt.Sprintf("%s %s (%s)", h.layer, number, name)
	}
	return h.layer + " " + number
}

// headerNames are the names of link types at https://www.tcpdump.org/linktypes.html, and of other numbers at IANA.
const headerNames = `
link type 3 AX25
link type 6 IEEE802_5
link type 7 ARCNET_BSD
link type 8 SLIP
link type 10 FDDI
link type 99 SYMANTEC_FIREWALL
link type 105 IEEE802_11
link type 107 FRELAY
link type 114 LTALK
link type 119 IEEE802_11_PRISM
link type 122 IP_OVER_FC
link type 123 SUNATM
link type 127 IEEE802_11_RADIOTAP
link type 129 ARCNET_LINUX
link type 130 JUNIPER_MLPPP
link type 131 JUNIPER_MLFR
link type 132 JUNIPER_ES
link type 133 JUNIPER_GGSN
link type 134 JUNIPER_MFR
link type 135 JUNIPER_ATM2
link type 136 JUNIPER_SERVICES
link type 137 JUNIPER_ATM1
link type 138 APPLE_IP_OVER_IEEE1394
link type 139 MTP2_WITH_PHDR
link type 140 MTP2
link type 141 MTP3
link type 142 SCCP
link type 143 DOCSIS
link type 144 LINUX_IRDA
link type 147 USER0
link type 148 USER1
link type 149 USER2
link type 150 USER3
link type 151 USER4
link type 152 USER5
link type 153 USER6
link type 154 USER7
link type 155 USER8
link type 156 USER9
link type 157 USER10
link type 158 USER11
link type 159 USER12
link type 160 USER13
link type 161 USER14
link type 162 USER15
link type 163 IEEE802_11_AVS
link type 164 JUNIPER_MONITOR
link type 165 BACNET_MS_TP
link type 166 PPP_PPPD
link type 167 JUNIPER_PPPOE
link type 168 JUNIPER_PPPOE_ATM
link type 169 GPRS_LLC
link type 170 GPF_T
link type 171 GPF_F
link type 172 GCOM_T1E1
link type 173 GCOM_SERIAL
link type 174 JUNIPER_PIC_PEER
link type 175 ERF_ETH
link type 176 ERF_POS
link type 177 LINUX_LAPD
link type 178 JUNIPER_ETHER
link type 179 JUNIPER_PPP
link type 180 JUNIPER_FRELAY
link type 181 JUNIPER_CHDLC
link type 182 MFR
link type 183 JUNIPER_VP
link type 184 A429
link type 185 A653_ICM
link type 186 USB_FREEBSD
link type 187 BLUETOOTH_HCI_H4
link type 188 IEEE802_16_MAC_CPS
link type 189 USB_LINUX
link type 190 CAN20B
link type 191 IEEE802_15_4_LINUX
link type 192 PPI
link type 193 IEEE802_16_MAC_CPS_RADIO
link type 194 JUNIPER_ISM
link type 195 IEEE802_15_4_WITHFCS
link type 196 SITA
link type 197 ERF
link type 198 RAIF1
link type 199 IPMB_KONTRON
link type 200 JUNIPER_ST
link type 201 BLUETOOTH_HCI_H4_WITH_PHDR
link type 202 AX25_KISS
link type 203 LAPD
link type 204 PPP_WITH_DIR
link type 205 C_HDLC_WITH_DIR
link type 206 FRELAY_WITH_DIR
link type 207 LAPB_WITH_DIR
link type 209 IPMB_LINUX
link type 210 FLEXRAY
link type 211 MOST
link type 212 LIN
link type 213 X2E_SERIAL
link type 214 X2E_XORAYA
link type 215 IEEE802_15_4_NONASK_PHY
link type 216 LINUX_EVDEV
link type 217 GSMTAP_UM
link type 218 GSMTAP_ABIS
link type 220 USB_LINUX_MMAPPED
link type 221 DECT
link type 222 AOS
link type 223 WIHART
link type 224 FC_2
link type 225 FC_2_WITH_FRAME_DELIMS
link type 226 IPNET
link type 227 CAN_SOCKETCAN
link type 230 IEEE802_15_4_NOFCS
link type 231 DBUS
link type 232 JUNIPER_VS
link type 233 JUNIPER_SRX_E2E
link type 234 JUNIPER_FIBRECHANNEL
link type 235 DVB_CI
link type 236 MUX27010
link type 237 STANAG_5066_D_PDU
link type 238 JUNIPER_ATM_CEMIC
link type 240 NETANALYZER
link type 241 NETANALYZER_TRANSPARENT
link type 242 IPOIB
link type 243 MPEG_2_TS
link type 244 NG40
link type 245 NFC_LLCP
link type 246 PFSYNC
link type 247 INFINIBAND
link type 248 SCTP
link type 249 USBPCAP
link type 250 RTAC_SERIAL
link type 251 BLUETOOTH_LE_LL
link type 252 WIRESHARK_UPPER_PDU
link type 253 NETLINK
link type 254 BLUETOOTH_LINUX_MONITOR
link type 255 BLUETOOTH_BREDR_BB
link type 256 BLUETOOTH_LE_LL_WITH_PHDR
link type 257 PROFIBUS_DL
link type 259 EPON
link type 260 IPMI_HPM_2
link type 261 ZWAVE_R1_R2
link type 262 ZWAVE_R3
link type 263 WATTSTOPPER_DLM
link type 264 ISO_14443
link type 265 RDS
link type 266 USB_DARWIN
link type 267 OPENFLOW
link type 268 SDLC
link type 269 TI_LLN_SNIFFER
link type 270 LORATAP
link type 271 VSOCK
link type 272 NORDIC_BLE
link type 273 DOCSIS31_XRA31
link type 274 ETHERNET_MPACKET
link type 275 DISPLAYPORT_AUX
link type 277 SERCOS_MONITOR
link type 278 OPENVIZSLA
link type 279 EBHSCR
link type 280 VPP_DISPATCH
link type 281 DSA_TAG_BRCM
link type 282 DSA_TAG_BRCM_PREPEND
link type 283 IEEE802_15_4_TAP
link type 284 DSA_TAG_DSA
link type 285 DSA_TAG_EDSA
link type 286 ELEE
link type 287 Z_WAVE_SERIAL
link type 288 USB_2_0
link type 289 ATSC_ALP
link type 290 ETW
link type 292 ZBOSS_NCP
link type 293 USB_2_0_LOW_SPEED
link type 294 USB_2_0_FULL_SPEED
link type 295 USB_2_0_HIGH_SPEED
link type 296 AUERSWALD_LOG
link type 297 ZWAVE_TAP
link type 298 SILABS_DEBUG_CHANNEL
link type 299 FIRA_UCI
link type 300 MDB
link type 301 DECT_NR
EtherType 0x0600 XNS
EtherType 0x0805 X.25
EtherType 0x0bad VINES
EtherType 0x22e5 QCN
EtherType 0x22ea stream reservation
EtherType 0x22f0 AVTP
EtherType 0x22f3 TRILL
EtherType 0x6003 DECnet
EtherType 0x8037 IPX
EtherType 0x809b AppleTalk
EtherType 0x80f3 AppleTalk ARP
EtherType 0x8137 IPX
EtherType 0x814c SNMP
EtherType 0x8808 pause
EtherType 0x883e WCCP
EtherType 0x884c MPOA
EtherType 0x8870 jumbo LLC
EtherType 0x887b HomePlug
EtherType 0x88a2 ATA over Ethernet
EtherType 0x88ab Powerlink
EtherType 0x88ad XiMeta
EtherType 0x88b8 GOOSE
EtherType 0x88ba sampled values
EtherType 0x88cd SERCOS III
EtherType 0x88e1 HomePlug AV
EtherType 0x88e5 MACsec
EtherType 0x88f5 MVRP
EtherType 0x8903 FabricPath
EtherType 0x8906 FCoE
EtherType 0x8909 Cisco metadata
EtherType 0x890d TDLS
EtherType 0x8914 FCoE initialization
EtherType 0x8915 RoCE
EtherType 0x892d bump-in-the-wire encryption
EtherType 0x892f HSR
EtherType 0x893a IEEE 1905
EtherType 0x894f NSH
EtherType 0x9003 Cisco metadata
EtherType 0x99fe AFDX
EtherType 0xfbfb VSM
PPP protocol 0x00fd compressed
PPP protocol 0x0053 encrypted
PPP protocol 0x003d multilink
PPP protocol 0x002d compressed TCP/IP
PPP protocol 0x002f uncompressed TCP/IP
PPP protocol 0x0031 bridge
IP protocol 50 ESP
IP protocol 108 IPComp
IP protocol 115 L2TP
`
