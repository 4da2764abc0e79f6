// A scripted session of a Go client: what it prints must not depend on whose server it talks to.
//
//	go run . HOST:PORT
//
// Session ids, zxids, times and the random part of protected names are not printed.
package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samuel/go-zookeeper/zk"
)

const (
	timeout = 2 * time.Second
	root    = "/go"
	lockers = 5
	turns   = 10
)

var open = zk.WorldACL(zk.PermAll)

func main() {
	server := os.Args[1]
	znodes(server)
	multis(server)
	watches(server)
	identities(server)
	locks(server)
	reconnects(server)
	expires(server)
	fmt.Println("end")
}

// --- connections ------------------------------------------------------------------------

// line is a client whose TCP connection can be cut, and kept from coming back.
type line struct {
	*zk.Conn
	events <-chan zk.Event
	mutex  sync.Mutex
	socket net.Conn
	closed bool
}

var errCut = errors.New("the line is cut")

func connect(server string) *line {
	found := &line{}
	conn, events, err := zk.Connect([]string{server}, timeout,
		zk.WithLogInfo(false), zk.WithLogger(silent{}), zk.WithDialer(found.dial))
	must(err)
	found.Conn, found.events = conn, events
	found.await(zk.StateHasSession)
	return found
}

type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func (l *line) dial(network, address string, limit time.Duration) (net.Conn, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return nil, errCut
	}
	socket, err := net.DialTimeout(network, address, limit)
	l.socket = socket
	return socket, err
}

func (l *line) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = true
	l.socket.Close()
}

func (l *line) mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.closed = false
}

// await reads session events until the state is reached.
func (l *line) await(state zk.State) {
	limit := time.After(15 * time.Second)
	for {
		select {
		case event := <-l.events:
			if event.Type == zk.EventSession && event.State == state {
				return
			}
		case <-limit:
			fmt.Println("the state", state, "does not come")
			os.Exit(1)
		}
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("unexpected:", err)
		os.Exit(1)
	}
}

// --- output -----------------------------------------------------------------------------

var random = regexp.MustCompile(`_c_[0-9a-f]{32}`)

func show(what string, values ...interface{}) {
	text := fmt.Sprintln(append([]interface{}{what + ":"}, values...)...)
	fmt.Print(random.ReplaceAllString(text, "_c_RANDOM"))
}

// of shows the fields of a Stat that no clock and no session decide.
func of(stat *zk.Stat) string {
	if stat == nil {
		return "no Stat"
	}
	return fmt.Sprintf("version %d cversion %d aversion %d ephemeral %t length %d children %d",
		stat.Version, stat.Cversion, stat.Aversion, stat.EphemeralOwner != 0,
		stat.DataLength, stat.NumChildren)
}

func shown(name string, events <-chan zk.Event) {
	select {
	case event := <-events:
		show(name, event.Type, event.State, event.Path, event.Err)
	case <-time.After(10 * time.Second):
		show(name, "no event")
	}
}

// --- the script -------------------------------------------------------------------------

func znodes(server string) {
	client := connect(server)
	defer client.Close()
	path, err := client.Create(root, []byte("data"), 0, open)
	show("create", path, err)
	path, err = client.Create(root, nil, 0, open)
	show("create again", path, err)
	for range [3]int{} {
		path, err = client.Create(root+"/s-", []byte{0, 255}, zk.FlagSequence, open)
		show("sequential", path, err)
	}
	path, err = client.Create(root+"/e", nil, zk.FlagEphemeral, open)
	show("ephemeral", path, err)
	path, err = client.Create(root+"/e/child", nil, 0, open)
	show("child of an ephemeral", path, err)
	path, err = client.CreateProtectedEphemeralSequential(root+"/p-", nil, open)
	show("protected", path, err)
	data, stat, err := client.Get(root)
	show("get", string(data), of(stat), err)
	stat, err = client.Set(root, []byte("other"), 0)
	show("set", of(stat), err)
	stat, err = client.Set(root, []byte("wrong"), 0)
	show("set with an old version", of(stat), err)
	children, stat, err := client.Children(root)
	sort.Strings(children)
	show("children", children, of(stat), err)
	exists, stat, err := client.Exists(root + "/none")
	show("exists", exists, of(stat), err)
	show("delete with children", client.Delete(root, -1))
	show("delete", client.Delete(root+"/s-0000000000", 0))
	show("delete again", client.Delete(root+"/s-0000000000", 0))
	_, _, err = client.Get("/none")
	show("get nothing", err)
	path, err = client.Create("/a//b", nil, 0, open)
	show("create with a bad path", path, err)
	path, err = client.Create(root+"/bad-acl", nil, 0, []zk.ACL{})
	show("create without an ACL", path, err)
	path, err = client.Sync(root)
	show("sync", path, err)
}

func multis(server string) {
	client := connect(server)
	defer client.Close()
	results, err := client.Multi(
		&zk.CreateRequest{Path: root + "/m", Data: []byte("1"), Acl: open},
		&zk.SetDataRequest{Path: root + "/m", Data: []byte("2"), Version: 0},
		&zk.CheckVersionRequest{Path: root + "/m", Version: 1},
		&zk.CreateRequest{Path: root + "/m/s-", Acl: open, Flags: zk.FlagSequence},
		&zk.CreateRequest{Path: root + "/m2", Acl: open, Flags: zk.FlagEphemeral},
		&zk.DeleteRequest{Path: root + "/m2", Version: -1},
	)
	showAll("multi", results, err)
	results, err = client.Multi(
		&zk.CreateRequest{Path: root + "/m3", Acl: open},
		&zk.CheckVersionRequest{Path: root + "/m", Version: 7},
		&zk.DeleteRequest{Path: root + "/m", Version: -1},
	)
	showAll("multi that fails", results, err)
	exists, _, err := client.Exists(root + "/m3")
	show("what it would have created", exists, err)
	results, err = client.Multi()
	showAll("empty multi", results, err)
}

func showAll(what string, results []zk.MultiResponse, err error) {
	show(what, len(results), err)
	for _, result := range results {
		show("  result", result.String, of(result.Stat), result.Error)
	}
}

func watches(server string) {
	client, other := connect(server), connect(server)
	defer client.Close()
	defer other.Close()
	path := root + "/watched"
	exists, _, created, err := client.ExistsW(path)
	show("exists with a watch", exists, err)
	_, _, children, err := client.ChildrenW(root)
	show("children with a watch", err)
	_, err = other.Create(path, nil, 0, open)
	must(err)
	shown("created", created)
	shown("children", children)
	_, _, changed, err := client.GetW(path)
	show("get with a watch", err)
	_, _, below, err := client.ChildrenW(path)
	show("children with a watch", err)
	_, err = other.Set(path, []byte("x"), -1)
	must(err)
	shown("changed", changed)
	must(other.Delete(path, -1))
	shown("deleted", below)
	_, _, _, err = client.GetW(path)
	show("get nothing with a watch", err)
}

func identities(server string) {
	client, other := connect(server), connect(server)
	defer client.Close()
	defer other.Close()
	path := root + "/private"
	show("auth", client.AddAuth("digest", []byte("ann:secret")))
	_, err := client.Create(path, []byte("x"), 0, zk.AuthACL(zk.PermAll))
	show("create for oneself", err)
	acl, stat, err := client.GetACL(path)
	show("its ACL", acl, of(stat), err)
	_, _, err = other.Get(path)
	show("get by another one", err)
	_, err = other.Set(path, nil, -1)
	show("set by another one", err)
	stat, err = client.SetACL(path, zk.WorldACL(zk.PermRead), 0)
	show("set the ACL", of(stat), err)
	data, _, err := other.Get(path)
	show("get by another one", string(data), err)
	show("unknown scheme", other.AddAuth("nosuch", []byte("x")))
}

func locks(server string) {
	var holders, most, done int32
	var wait sync.WaitGroup
	for range [lockers]int{} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			client := connect(server)
			defer client.Close()
			lock := zk.NewLock(client.Conn, root+"/lock", open)
			for range [turns]int{} {
				must(lock.Lock())
				if now := atomic.AddInt32(&holders, 1); now > atomic.LoadInt32(&most) {
					atomic.StoreInt32(&most, now)
				}
				time.Sleep(time.Millisecond)
				atomic.AddInt32(&done, 1)
				atomic.AddInt32(&holders, -1)
				must(lock.Unlock())
			}
		}()
	}
	wait.Wait()
	show("locks", done, "turns, at most", most, "holder at a time")
}

func reconnects(server string) {
	client, other := connect(server), connect(server)
	defer client.Close()
	defer other.Close()
	path := root + "/kept"
	_, err := client.Create(path, nil, zk.FlagEphemeral, open)
	must(err)
	_, _, changed, err := client.GetW(root)
	must(err)
	_, _, still, err := client.ExistsW(root + "/later")
	must(err)
	before := client.SessionID()
	client.cut()
	client.await(zk.StateDisconnected)
	_, err = other.Set(root, []byte("while it was away"), -1)
	must(err)
	client.mend()
	client.await(zk.StateHasSession)
	show("the same session", client.SessionID() == before)
	exists, stat, err := other.Exists(path)
	show("its ephemeral", exists, of(stat), err)
	shown("what changed while it was away", changed)
	_, err = other.Create(root+"/later", nil, 0, open)
	must(err)
	shown("what changed afterwards", still)
}

func expires(server string) {
	client, other := connect(server), connect(server)
	defer client.Close()
	defer other.Close()
	path := root + "/lost"
	_, err := client.Create(path, nil, zk.FlagEphemeral, open)
	must(err)
	exists, _, gone, err := other.ExistsW(path)
	show("its ephemeral", exists, err)
	before := client.SessionID()
	client.cut()
	shown("when it has been away for too long", gone)
	client.mend()
	client.await(zk.StateExpired)
	client.await(zk.StateHasSession)
	show("another session", client.SessionID() != before)
	exists, _, err = client.Exists(path)
	show("its ephemeral", exists, err)
}
