import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("A synchronous reader", .timeLimit(.minutes(10)))
struct SynchronousGrantReaderTests {
    @Test("sees each commit at once, finds no unknown user, and returns nil after it is closed")
    func reading() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            let reader = try SynchronousGrantReader(path: path, bootID: "boot", connections: 2)
            for number in 1...20 as ClosedRange<Int64> {
                let grant = try Sample.grant(number)
                #expect(try reader.grant(ofUser: grant.userID) == nil)
                try await store.add([grant])
                #expect(try reader.grant(ofUser: grant.userID) == grant)
            }
            reader.close()
            #expect(try reader.grant(ofUser: try Sample.grant(1).userID) == nil)
            await store.close()
        }
    }
}
