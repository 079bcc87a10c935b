import TestSupport
import Testing

@testable import Base
@testable import Storage

@Suite("The SQLite store loses nothing and keeps no deleted token", .timeLimit(.minutes(10)))
struct SQLiteSafetyTests {
    private func withStore(_ body: (SQLiteStore, TemporaryFolder) async throws -> Void) async throws {
        try await TemporaryFolder.with { folder in
            let store = try SQLiteStore(path: folder.path("grants.db"), timeSource: ManualTime(), bootID: "boot")
            try await body(store, folder)
            await store.close()
        }
    }

    /// Returns when all earlier calls in the writer's queue have finished.
    private func finishQueue(of store: SQLiteStore) async throws {
        try await store.removeWorker("missing")
    }

    @Test("A damaged row leaves the others in use, and its error does not ask for a backup, which has older tokens")
    func damagedRow() async throws {
        try await withStore { store, folder in
            try await store.add([try Sample.grant(1), try Sample.grant(2)])
            let damage = SQLQuery("damage", sql: "UPDATE grants SET refresh_token = x'00' WHERE id = 1")
            try SQLiteConnection(path: folder.path("grants.db"), timeout: .seconds(10)).run(damage)
            let error = await #expect(throws: StoreError.self) { _ = try await store.grant(GrantID(rawValue: 1)) }
            #expect(error?.code == .corrupt)
            #expect(error?.message.contains("Do not put a backup") == true)
            #expect(try await store.grant(GrantID(rawValue: 2)) != nil)
        }
    }

    @Test("Deleted tokens are in no file any more", arguments: [1, 300, 9000])
    func wiping(repeats: Int) async throws {
        try await withStore { store, folder in
            let text = { (number: Int64) in String(repeating: "secret-\(number)-", count: repeats) }
            let grants = try (1...40 as ClosedRange<Int64>).map { number in
                try Sample.grant(number, refreshToken: text(number), accessToken: text(number))
            }
            try await store.add(grants)
            for number in stride(from: 1 as Int64, through: 40, by: 3) {
                // Rewritten first, so that the tokens have been in more than one place.
                try await store.change(GrantID(rawValue: number)) { grant in
                    grant.scope = String(repeating: "scope ", count: 20)
                    return []
                }
                #expect(try !folder.names(holding: Array("secret-\(number)-".utf8)).isEmpty)
                try await store.change(GrantID(rawValue: number)) { grant in
                    grant.disconnectByRequest(revokes: false, at: start)
                }
                try await finishQueue(of: store)
                #expect(try folder.names(holding: Array("secret-\(number)-".utf8)).isEmpty)
            }
            #expect(try !folder.names(holding: Array("secret-2-".utf8)).isEmpty)
            #expect(try await store.integrityProblems().isEmpty)
        }
    }

    @Test("A successor whose grace is over, and one whose session ended, are in no file any more")
    func successors() async throws {
        try await withStore { store, folder in
            var sessions = [Sample.session(1), Sample.session(2)]
            for position in sessions.indices {
                let outcome = try Sample.rotate(&sessions[position], 1, to: 2, successor: "successor-\(position)-")
                #expect(outcome == .rotated(isLateAnswer: false))
            }
            try await store.startSessions(sessions)
            let ended = sessions[0]
            try await store.transact { try $0.endSession(ended.id, ofUser: ended.userID) }
            try await finishQueue(of: store)
            #expect(try folder.names(holding: Array("successor-0-".utf8)).isEmpty)
            #expect(try !folder.names(holding: Array("successor-1-".utf8)).isEmpty)
            _ = try await store.removeExpired(at: start + Session.defaultGrace - .milliseconds(1))
            try await finishQueue(of: store)
            #expect(try !folder.names(holding: Array("successor-1-".utf8)).isEmpty)
            _ = try await store.removeExpired(at: start + Session.defaultGrace)
            try await finishQueue(of: store)
            #expect(try folder.names(holding: Array("successor-1-".utf8)).isEmpty)
        }
    }

    @Test("The data of a deleted user is in no file any more")
    func deletedUser() async throws {
        try await withStore { store, folder in
            try await store.transact { transaction in
                try transaction.insert(
                    User(id: "user", createdAt: start, email: "somebody@example.com", name: "Some Body")
                )
            }
            #expect(try !folder.names(holding: Array("somebody@example.com".utf8)).isEmpty)
            _ = try await store.transact { try AccountDeletion.delete(user: "user", in: $0, at: start) }
            try await finishQueue(of: store)
            for text in ["somebody@example.com", "Some Body"] {
                #expect(try folder.names(holding: Array(text.utf8)).isEmpty, "\(text)")
            }
        }
    }

    @Test("The cleaning of the log that a reader delays is finished after a later commit")
    func delayedWipe() async throws {
        try await withStore { store, folder in
            try await store.add([try Sample.grant(1, refreshToken: "secret", accessToken: nil)])
            let secret = Array("secret".utf8)
            do {
                let reader = try SQLiteConnection.reader(path: store.path, leases: store.leases, timeout: .zero)
                try await store.change(GrantID(rawValue: 1)) { _ in [] }
                try reader.run(SQLQuery("begin", sql: "BEGIN"))
                _ = try reader.integer(SQLQuery("count", sql: "SELECT count(*) FROM grants"))
                try await store.change(GrantID(rawValue: 1)) { $0.disconnectByRequest(revokes: false, at: start) }
                try await finishQueue(of: store)
                #expect(try !folder.names(holding: secret).isEmpty)
                reader.rollBack()
            }
            try await finishQueue(of: store)
            try await finishQueue(of: store)
            #expect(try folder.names(holding: secret).isEmpty)
        }
    }

    @Test("An interrupted cleaning of the log is finished by the next process that opens the file")
    func inheritedWipe() async throws {
        try await withStore { store, folder in
            let secret = Array("secret".utf8)
            try await store.add([try Sample.grant(1, refreshToken: "secret", accessToken: nil)])
            // The state after a process is killed right after its commit: no process knows that the log must be
            // cleaned.
            try await store.writer.run { connection throws(StoreError) in
                try connection.write { () throws(StoreError) in
                    try connection.execute(
                        SQLQuery("wipe", sql: "UPDATE grants SET refresh_token = NULL, refresh_key = NULL")
                    )
                }
            }
            #expect(try !folder.names(holding: secret).isEmpty)
            let next = try SQLiteStore(path: store.path, timeSource: ManualTime(), bootID: "boot")
            try await finishQueue(of: next)
            try await finishQueue(of: next)
            #expect(try folder.names(holding: secret).isEmpty)
            await next.close()
        }
    }

    @Test("A full disk destroys no stored data, and the store continues when there is space")
    func diskFull() async throws {
        try await withStore { store, _ in
            let kept = try Sample.grants(1...20)
            try await store.add(kept)
            try await limit(store, to: "(SELECT page_count FROM pragma_page_count)")
            let large = try Sample.grant(21, refreshToken: String(repeating: "x", count: 100_000))
            let error = await #expect(throws: StoreError.self) { try await store.add([large]) }
            #expect(error?.code == .diskFull)
            #expect(error?.mayPass == true)

            // A body that continues regardless gets the same error, and none of its writes is stored.
            let again = await #expect(throws: StoreError.self) {
                try await store.transact { transaction in
                    #expect(throws: StoreError.self) { try transaction.insert(large) }
                    try? transaction.setClientHealth([1], of: "client")
                }
            }
            #expect(again?.code == .diskFull)
            #expect(try await store.clientHealth().isEmpty)
            #expect(try await store.grants(after: nil, in: nil, atMost: 100) == kept)
            #expect(try await store.integrityProblems().isEmpty)

            try await limit(store, to: "1000000")
            try await store.add([large])
            #expect(try await store.grant(large.id) == large)
        }
    }

    private func limit(_ store: SQLiteStore, to pages: String) async throws {
        try await store.writer.run { connection throws(StoreError) in
            var pages = pages
            if pages.hasPrefix("(") {
                pages = String(try connection.integer(SQLQuery("page count", sql: "PRAGMA page_count")))
            }
            try connection.execute(SQLQuery("limit", sql: "PRAGMA max_page_count = \(pages)"))
        }
    }

    @Test("Nothing is claimed from a file that is no longer under its name, until it is put back")
    func movedFile() async throws {
        try await withStore { store, folder in
            let grant = try Sample.grant(1)
            try await store.add([grant])
            try folder.rename("grants.db", to: "elsewhere.db")
            let refused = await #expect(throws: StoreError.self) {
                try await store.claim([grant.id], dueBy: nil, owner: "worker", for: .seconds(30))
            }
            #expect(refused?.code == .replaced)
            try folder.rename("elsewhere.db", to: "grants.db")
            #expect(try await store.claim([grant.id], dueBy: nil, owner: "worker", for: .seconds(30)).count == 1)
        }
    }

    @Test("The connections have the settings that durability and secure deletion need")
    func settings() async throws {
        try await withStore { store, _ in
            let expected: [(String, Int64)] = [
                ("synchronous", 2), ("foreign_keys", 1), ("secure_delete", 1), ("trusted_schema", 0), ("mmap_size", 0),
                ("temp_store", 2), ("application_id", SQLiteSchema.applicationID), ("wal_autocheckpoint", 0),
                ("boot.synchronous", 0),
            ]
            for (pragma, value) in expected {
                let found = try await store.writer.run { connection throws(StoreError) in
                    try connection.integer(SQLQuery("test \(pragma)", sql: "PRAGMA \(pragma)"))
                }
                #expect(found == value, "\(pragma)")
            }
            let refused = await #expect(throws: StoreError.self) {
                try await store.reader.run { connection throws(StoreError) in
                    try connection.execute(SQLQuery("write", sql: "DELETE FROM grants"))
                }
            }
            #expect(refused?.message.contains("attempt to write a readonly database") == true)
        }
    }

    @Test("The use of a transaction after its end is a fault")
    func lateUse() async throws {
        try await withStore { store, _ in
            try await store.writer.run { connection throws(StoreError) in
                let transaction = SQLiteTransaction(of: store, on: connection, trace: nil)
                try transaction.finish()
                let error = #expect(throws: StoreError.self) { try transaction.grant(GrantID(rawValue: 1)) }
                #expect(error?.code == .fault)
            }
        }
    }
}
