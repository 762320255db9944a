module jobwire

go 1.26.0
