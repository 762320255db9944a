package loadgen_test

import (
	"context"
	"fmt"
	"net"

	"jobwire/codec/gearman"
	"jobwire/loadgen"
	"jobwire/refserver"
	server "jobwire/refserver/gearman"
)

// ExampleRun submits 1,000 jobs to a reference server, completes them, and checks that none was lost.
func ExampleRun() {
	srv := refserver.New(server.New(server.Options{}), refserver.Options{Protocol: gearman.Protocol})
	defer srv.Close()
	result, err := loadgen.Run(context.Background(), loadgen.Config{
		Protocol: gearman.Protocol,
		Clients:  2,
		Workers:  2,
		Count:    1000,
		Dial: func(ctx context.Context) (net.Conn, error) {
			client, conn := net.Pipe()
			go srv.ServeConn(ctx, conn)
			return client, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("jobs:", result.Jobs)
	fmt.Println("lost:", result.Account.Lost)
	fmt.Println("duplicated:", result.Account.Duplicated)
	// Output:
	// jobs: 1000
	// lost: 0
	// duplicated: 0
}
