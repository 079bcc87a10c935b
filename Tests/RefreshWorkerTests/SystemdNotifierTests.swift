import Base
import Testing

@testable import RefreshWorker

@Suite("Notifying systemd")
struct SystemdNotifierTests {
    @Test("sends each message as one datagram to a path", .timeLimit(.minutes(10)))
    func sendsToPath() throws {
        let listener = try DatagramListener(isAbstract: false)
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": listener.address], processID: 1)
        try notifier.send([.ready, .status("refreshing\n1000 grants")])
        #expect(try listener.receive() == "READY=1\nSTATUS=refreshing 1000 grants")
        try notifier.send([.reloading(monotonicMicroseconds: 12_345)])
        #expect(try listener.receive() == "RELOADING=1\nMONOTONIC_USEC=12345")
        try notifier.send([.watchdog])
        #expect(try listener.receive() == "WATCHDOG=1")
        try notifier.send([.extendStart(by: .seconds(60))])
        #expect(try listener.receive() == "EXTEND_TIMEOUT_USEC=60000000")
        try notifier.send([.stopping])
        #expect(try listener.receive() == "STOPPING=1")
    }

    @Test("sends to a name in the abstract namespace", .timeLimit(.minutes(10)))
    func sendsToAbstractName() throws {
        let listener = try DatagramListener(isAbstract: true)
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": listener.address], processID: 1)
        try notifier.send([.ready])
        #expect(try listener.receive() == "READY=1")
    }

    @Test("does nothing outside of systemd", arguments: [[:], ["NOTIFY_SOCKET": ""]])
    func silentOutside(environment: [String: String]) throws {
        let notifier = SystemdNotifier(environment: environment, processID: 1)
        #expect(notifier.watchdogInterval == nil)
        #expect(notifier.problems.isEmpty)
        try notifier.send([.ready])
    }

    @Test("throws if the socket does not have a listener")
    func reportsFailure() throws {
        let environment = ["NOTIFY_SOCKET": "/nonexistent/notify"]
        let notifier = SystemdNotifier(environment: environment, processID: 1)
        let failure = try #require(throws: SystemCallError.self) { try notifier.send([.ready]) }
        #expect(failure.description == "sendto failed: No such file or directory")
    }

    @Test(
        "ignores an invalid address, and reports it",
        arguments: ["notify", "@", "/", "vsock:2:1234", "/" + String(repeating: "x", count: 107)]
    )
    func badAddress(address: String) throws {
        let notifier = SystemdNotifier(environment: ["NOTIFY_SOCKET": address], processID: 1)
        #expect(notifier.problems.count == 1)
        #expect(notifier.problems.first?.contains("NOTIFY_SOCKET") == true)
        try notifier.send([.ready])
    }

    @Test(
        "reads the interval in which systemd expects a message",
        arguments: [
            (["WATCHDOG_USEC": "60000000"], .seconds(60)),
            (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "7"], .seconds(60)),
            (["WATCHDOG_USEC": "60000000", "WATCHDOG_PID": "8"], nil),
            (["WATCHDOG_USEC": ""], nil),
            (["WATCHDOG_PID": "7"], nil),
        ] as [([String: String], Duration?)]
    )
    func watchdogInterval(environment: [String: String], expected: Duration?) {
        #expect(SystemdNotifier(environment: environment, processID: 7).watchdogInterval == expected)
    }

    @Test(
        "ignores invalid watchdog variables, and reports them",
        arguments: [
            (["WATCHDOG_USEC": "0"], "WATCHDOG_USEC"), (["WATCHDOG_USEC": "soon"], "WATCHDOG_USEC"),
            (["WATCHDOG_USEC": "-5"], "WATCHDOG_USEC"), (["WATCHDOG_USEC": "1", "WATCHDOG_PID": "me"], "WATCHDOG_PID"),
        ]
    )
    func badWatchdog(environment: [String: String], variable: String) {
        let notifier = SystemdNotifier(environment: environment, processID: 7)
        #expect(notifier.watchdogInterval == nil)
        #expect(notifier.problems.count == 1)
        #expect(notifier.problems.first?.contains(variable) == true)
    }

    @Test("keeps a status to one line of bounded length")
    func boundsStatus() {
        let text = NotifyMessage.status(String(repeating: "a\r\n", count: 1000)).assignments
        #expect(text.count == "STATUS=".count + 512)
        #expect(text.allSatisfy { !$0.isNewline })
    }
}
