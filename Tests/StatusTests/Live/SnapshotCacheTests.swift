import Synchronization
import TestSupport
import Testing

@testable import Base
@testable import Status

@Suite("A snapshot that is shared for a while")
struct SnapshotCacheTests {
    private let time = ManualTime()

    /// Returns a snapshot that the tests know by its number.
    private static func snapshot(_ number: Int64) -> StatusSnapshot {
        StatusSnapshot(at: Timestamp(milliseconds: number))
    }

    @Test("is not shown once it was made long ago")
    func oldSnapshot() async throws {
        let cache = SnapshotCache(lifetime: .seconds(2), time: time) { Self.snapshot(7) }
        #expect(try await cache.freshSnapshot().at.milliseconds == 7)
        time.advance(by: .seconds(599))
        #expect(await cache.latestSnapshot()?.at.milliseconds == 7)
        time.advance(by: .seconds(1_200))
        #expect(await cache.latestSnapshot()?.at == nil)
    }

    @Test("is made again after its lifetime, not for each caller")
    func lifetime() async throws {
        let count = Mutex<Int64>(0)
        let cache = SnapshotCache(lifetime: .seconds(2), time: time) {
            count.withLock { count in
                count += 1
                return Self.snapshot(count)
            }
        }
        #expect(try await cache.freshSnapshot().at.milliseconds == 1)
        time.advance(by: .milliseconds(1_999))
        #expect(try await cache.freshSnapshot().at.milliseconds == 1)
        time.advance(by: .milliseconds(1))
        #expect(try await cache.freshSnapshot().at.milliseconds == 2)
        #expect(await cache.latestSnapshot()?.at.milliseconds == 2)
    }
}
