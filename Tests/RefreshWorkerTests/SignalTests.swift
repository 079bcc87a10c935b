import Glibc
import Testing

@testable import RefreshWorker

@Suite("Signals")
struct SignalTests {
    @Test(
        "stop gracefully the first time and immediately the second time",
        arguments: [
            ([.terminate], [.deliver(.terminate)]),
            ([.interrupt, .interrupt], [.deliver(.interrupt), .exit(status: 130)]),
            ([.terminate, .terminate], [.deliver(.terminate), .exit(status: 143)]),
            ([.interrupt, .terminate], [.deliver(.interrupt), .exit(status: 143)]),
            ([.hangUp, .hangUp, .terminate], [.deliver(.hangUp), .deliver(.hangUp), .deliver(.terminate)]),
            ([.terminate, .hangUp, .terminate], [.deliver(.terminate), nil, .exit(status: 143)]),
        ] as [([SignalPolicy.Signal], [SignalPolicy.Action?])]
    )
    func policy(signals: [SignalPolicy.Signal], actions: [SignalPolicy.Action?]) {
        var policy = SignalPolicy()
        #expect(signals.map { policy.receive($0) } == actions)
    }

    @Test("that arrived twice before they were read count as two")
    func coalesced() {
        var policy = SignalPolicy()
        #expect(policy.receive(.terminate, count: 2) == .exit(status: 143))
    }

    @Test("to reload are merged until they are read, and a request to stop overtakes them")
    func merged() async {
        let stream = SignalStream()
        var iterator = stream.signals.makeAsyncIterator()
        for _ in 0..<7_000 { stream.receive(.hangUp, count: 1) }
        #expect(await iterator.next() == .hangUp)
        for _ in 0..<7_000 { stream.receive(.hangUp, count: 1) }
        stream.receive(.terminate, count: 1)
        stream.receive(.hangUp, count: 1)
        #expect(await iterator.next() == .terminate)
        stream.stop()
        #expect(await iterator.next() == nil)
    }

    @Test("arrive in the stream, and a broken pipe does not end the process", .timeLimit(.minutes(10)))
    func arrive() async {
        await #expect(processExitsWith: .exitCode(0)) {
            let stream = await SignalStream.start()
            var iterator = stream.signals.makeAsyncIterator()
            kill(getpid(), SIGPIPE)
            kill(getpid(), SIGHUP)
            #expect(await iterator.next() == .hangUp)
            kill(getpid(), SIGTERM)
            #expect(await iterator.next() == .terminate)
            stream.stop()
            #expect(await iterator.next() == nil)
        }
    }

    @Test("end the process immediately the second time", .timeLimit(.minutes(10)))
    func secondEnds() async {
        await #expect(processExitsWith: .exitCode(130)) {
            let stream = await SignalStream.start()
            var iterator = stream.signals.makeAsyncIterator()
            kill(getpid(), SIGINT)
            _ = await iterator.next()
            kill(getpid(), SIGINT)
            // A third signal never comes: only the end of the process ends this.
            _ = await iterator.next()
        }
    }

    @Test("do not leave a core file, and other processes cannot read the memory", .timeLimit(.minutes(10)))
    func hardens() async {
        await #expect(processExitsWith: .exitCode(0)) {
            try ProcessSetup.forbidDumps()
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
            #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
            // prctl is variadic, so Swift does not import it; on Linux's ABIs it is called like this one.
            typealias Prctl = @convention(c) (Int32, UInt, UInt, UInt, UInt) -> Int32
            let prctl = unsafeBitCast(dlsym(nil, "prctl"), to: Prctl.self)
            let getDumpable: Int32 = 3
            #expect(prctl(getDumpable, 0, 0, 0, 0) == 0)
        }
    }
}
