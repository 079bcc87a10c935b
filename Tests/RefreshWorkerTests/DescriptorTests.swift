import Dispatch
import Glibc
import Testing

@testable import RefreshWorker

@Suite("Without a free descriptor")
struct DescriptorTests {
    @Test("Dispatch goes on, which reads a file of each of its threads", .timeLimit(.minutes(10)))
    func dispatch() async {
        await #expect(processExitsWith: .exitCode(0)) {
            let queue = DispatchQueue(label: "end")
            await withCheckedContinuation { started in
                queue.asyncAfter(deadline: .now() + .milliseconds(1)) { started.resume() }
            }
            // It does so once a second while its queue has more work than threads.
            let gate = DispatchSemaphore(value: 0)
            for _ in 0..<300 { DispatchQueue.global().async { gate.wait() } }
            queue.asyncAfter(deadline: .now() + 3) { _exit(0) }
            var none = rlimit(rlim_cur: 0, rlim_max: 0)
            #expect(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &none) == 0)
            #expect(open("/dev/null", O_RDONLY) == -1)
            #expect(errno == EMFILE)
            pause()
        }
    }
}
