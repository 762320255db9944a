module example.com/go-beanstalk-driver

go 1.26

require github.com/beanstalkd/go-beanstalk v0.2.0
