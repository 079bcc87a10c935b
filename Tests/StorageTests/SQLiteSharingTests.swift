import Crypto
import Foundation
import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("Several processes share one SQLite file", .timeLimit(.minutes(10)))
struct SQLiteSharingTests {
    @Test("Of two stores on one file, each grant goes to one")
    func exclusivity() async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let path = folder.path("grants.db")
            let stores = try (0..<2).map { _ in try SQLiteStore(path: path, timeSource: time, bootID: "boot") }
            let ids = (1...200).map { GrantID(rawValue: $0) }
            try await stores[0].add(try Sample.grants(1...200))
            let winners = try await withThrowingTaskGroup(of: [GrantID].self) { group in
                for worker in 0..<8 {
                    let store = stores[worker % 2]
                    group.addTask {
                        var won: [GrantID] = []
                        for id in ids {
                            won += try await store.claim([id], dueBy: nil, owner: "\(worker)", for: .seconds(30))
                                .map(\.id)
                        }
                        return won
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(winners.sorted() == ids)
            for store in stores { await store.close() }
        }
    }

    @Test("Grants that another program removes are missed, and those of deleted users are not")
    func rowsLost() async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            try await store.add(try Sample.grants(1...3))
            _ = try await store.transact { try AccountDeletion.delete(user: "user 1", in: $0, at: start) }
            try await store.change(GrantID(rawValue: 1)) { grant in
                grant.finishRevocation()
                return []
            }
            let end = start + AccountDeletion.minimumTombstone
            #expect(try await store.removeExpired(at: end).users == 1)
            #expect(try await store.grantRowProblem() == nil)
            let other = try SQLiteConnection(path: folder.path("grants.db"), timeout: .zero)
            try other.execute(SQLQuery("another program", sql: "DELETE FROM grants WHERE id = 2"))
            let problem = try await store.grantRowProblem()
            #expect(problem?.hasPrefix("1 grants are in the database, and 2 were stored there") == true)
            await store.close()
        }
    }

    @Test("A process that opens the file leaves the mark of an unfinished claim")
    func unfinishedClaim() async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: time, bootID: "boot")
            let id = GrantID(rawValue: 1)
            try await store.add([try Sample.grant(1)])
            _ = try await store.claim([id], dueBy: nil, owner: "suspended", for: .seconds(30))
            time.advance(by: .seconds(40))
            let command = try SQLiteStore(path: path, timeSource: time, bootID: "boot")
            let next = try await command.claim([id], dueBy: nil, owner: "other", for: .seconds(30))
            #expect(next.first?.lease?.followsUnfinishedClaim == true)
            for store in [store, command] { await store.close() }
        }
    }

    @Test("A file and a symbolic link to it share their leases")
    func symbolicLink() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let link = folder.path("link.db")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            let stores = try [path, link].map { try SQLiteStore(path: $0, timeSource: ManualTime(), bootID: "boot") }
            let id = GrantID(rawValue: 1)
            try await stores[0].add([try Sample.grant(1)])
            #expect(try await stores[0].claim([id], dueBy: nil, owner: "a", for: .seconds(30)).count == 1)
            #expect(try await stores[1].claim([id], dueBy: nil, owner: "b", for: .seconds(30)).isEmpty)
            for store in stores { await store.close() }
            #expect(try folder.names() == ["grants.db", "grants.db-leases-boot", "link.db"])
        }
    }

    @Test("The files of leases of earlier boots are removed, and no other file")
    func earlierBoots() async throws {
        try await TemporaryFolder.with { folder in
            let (former, present) = ("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-aaaaaaaaaaaa")
            for boot in [former, present] {
                let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: boot)
                try await store.add([try Sample.grant(boot == former ? 1 : 2)])
                if boot == former { try await store.backup(to: folder.path("grants.db-leases-backup")) }
                await store.close()
            }
            let names = ["grants.db", "grants.db-leases-\(present)", "grants.db-leases-backup"]
            #expect(try folder.names() == names)
        }
    }

    @Test("A process that sees another boot id is refused while the database is open, and disturbs nothing")
    func anotherBootID() async throws {
        try await TemporaryFolder.with { folder in
            let (running, other) = ("11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-aaaaaaaaaaaa")
            let path = folder.path("grants.db")
            let store = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: running)
            try await store.add([try Sample.grant(1)])
            #expect {
                try SQLiteStore(path: path, timeSource: ManualTime(), bootID: other)
            } throws: { ($0 as? StoreError)?.code == .inUse }
            #expect(try folder.names().contains("grants.db-leases-\(running)"))
            #expect(try await store.claim([GrantID(rawValue: 1)], dueBy: nil, owner: "a", for: .seconds(30)).count == 1)
            await store.close()
            let next = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: other)
            await next.close()
        }
    }

    @Test("A commit of one store is seen by the other at once")
    func visibility() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let writing = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            let reading = try SQLiteStore(path: path, timeSource: ManualTime(), bootID: "boot")
            for number in 1...20 as ClosedRange<Int64> {
                let grant = try Sample.grant(number)
                try await writing.add([grant])
                #expect(try await reading.grant(grant.id) == grant)
            }
            await writing.close()
            await reading.close()
        }
    }

    @Test("A new boot ends the leases and the workers of the previous one")
    func reboot() async throws {
        try await TemporaryFolder.with { folder in
            let time = ManualTime()
            let path = folder.path("grants.db")
            let before = try SQLiteStore(path: path, timeSource: time, bootID: "first boot")
            let id = GrantID(rawValue: 1)
            try await before.add([try Sample.grant(1)])
            let lease = try await before.claim([id], dueBy: nil, owner: "a", for: .seconds(3600))[0].lease
            let report = WorkerReport(id: "a", keyIDs: [], sealingKeyID: try Sample.sealed("x").keyID)
            _ = try await before.report(report)
            let after = try SQLiteStore(path: path, timeSource: time, bootID: "second boot")
            #expect(try await after.liveWorkers().isEmpty)
            #expect(try await after.renew([id: lease?.claim ?? 0], for: .seconds(30)).isEmpty)
            #expect(try await after.claim([id], dueBy: nil, owner: "b", for: .seconds(30)).count == 1)
            await before.close()
            await after.close()
        }
    }

    @Test("A write that another process blocks fails as busy, and succeeds later")
    func busy() async throws {
        try await TemporaryFolder.with { folder in
            let path = folder.path("grants.db")
            let store = try SQLiteStore(
                path: path,
                timeSource: ManualTime(),
                bootID: "boot",
                timeout: .milliseconds(1)
            )
            let grant = try Sample.grant(1)
            try await store.add([grant])
            do {
                let other = try SQLiteConnection(path: path, timeout: .zero)
                try other.begin()
                let error = await #expect(throws: StoreError.self) {
                    try await store.claim([grant.id], dueBy: nil, owner: "a", for: .seconds(30))
                }
                #expect(error?.code == .busy)
                #expect(error?.mayPass == true)
                #expect(error?.message.contains(path) == true)
                #expect(try await store.grant(grant.id) == grant)
                other.rollBack()
            }
            #expect(try await store.claim([grant.id], dueBy: nil, owner: "a", for: .seconds(30)).count == 1)
            await store.close()
        }
    }
}
