import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Status

@Suite("A result that is shared for a while")
struct CachedResultTests {
    private let time = ManualTime()

    @Test("is not shown once it was got long ago")
    func oldResult() async throws {
        let cache = CachedResult(lifetime: .seconds(2), time: time) { 7 }
        #expect(try await cache.value() == 7)
        time.advance(by: .seconds(599))
        #expect(await cache.latestValue() == 7)
        time.advance(by: .seconds(1_200))
        #expect(await cache.latestValue() == nil)
    }

    @Test("is got again after its lifetime, not for each caller")
    func lifetime() async throws {
        let count = Mutex(0)
        let cache = CachedResult(lifetime: .seconds(2), time: time) {
            count.withLock { count in
                count += 1
                return count
            }
        }
        #expect(try await cache.value() == 1)
        time.advance(by: .milliseconds(1_999))
        #expect(try await cache.value() == 1)
        time.advance(by: .milliseconds(1))
        #expect(try await cache.value() == 2)
        #expect(await cache.latestValue() == 2)
    }
}
