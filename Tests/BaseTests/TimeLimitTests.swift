import TestSupport
import Testing

@testable import Base

@Suite("A wait with a time limit", .timeLimit(.minutes(10)))
struct TimeLimitTests {
    private let time = ManualTime()

    @Test("ends with its body, before the time is up")
    func ends() async {
        let (ends, end) = AsyncStream<Void>.makeStream()
        let time = time
        let waiting = Task {
            await time.wait(atMost: .seconds(1)) { for await _ in ends { return } }
        }
        await time.sleepers(atLeast: 1)
        end.yield()
        #expect(await waiting.value)
    }

    @Test("ends when the time is up, and cancels its body")
    func isUp() async {
        let time = time
        let (ends, end) = AsyncStream<Void>.makeStream()
        let (cancellations, cancellation) = AsyncStream<Bool>.makeStream()
        let waiting = Task {
            await time.wait(atMost: .seconds(1)) {
                for await _ in ends {}
                cancellation.yield(Task.isCancelled)
            }
        }
        await time.sleepers(atLeast: 1)
        time.advance(by: .seconds(1))
        #expect(await !waiting.value)
        for await isCancelled in cancellations {
            #expect(isCancelled)
            break
        }
        end.finish()
    }
}
