import Crypto
import Dispatch
import Glibc
import Testing

@testable import Base
@testable import Storage

@Suite("Deadlines of calls to PostgreSQL", .enabled(if: PostgresServer.url != nil, PostgresServer.skipped))
struct PostgresDeadlineTests {
    private static let sleep = SQLQuery("sleep", sql: "SELECT pg_sleep(600)")
    private static let one = SQLQuery("one", sql: "SELECT 1::bigint")

    /// A deadline that has passed before the server receives the statement.
    private var over: CallDeadline { CallDeadline(in: .zero) }

    private func withConnection(_ body: (PostgresConnection) async throws -> Void) async throws {
        let address = try DatabaseAddress(url: Secret(try #require(PostgresServer.url)))
        try await body(try PostgresConnection.open(address, until: CallDeadline(in: .seconds(60))))
    }

    /// Expects that the connection returns the result of a new query.
    private func expectAnswer(from connection: PostgresConnection) throws {
        let answer = try connection.run(StatementBatch(Self.one), until: CallDeadline(in: .seconds(60)))[0]
        let value = try answer.first { $0.integer() }
        #expect(value == 1)
    }

    private struct Ending: Equatable {
        let code: StoreError.Code
        let losesConnection: Bool
    }

    /// Returns the failure of a batch; `nil` if it succeeds.
    private func ending(of batch: StatementBatch, on connection: PostgresConnection, until deadline: CallDeadline)
        -> Ending?
    {
        do throws(StoreError) {
            _ = try connection.run(batch, until: deadline)
            return nil
        } catch {
            return Ending(code: error.code, losesConnection: error.losesConnection)
        }
    }

    @Test("The server ends a query at its deadline, and its late response is still received")
    func lateAnswer() async throws {
        try await withConnection { connection in
            var batch = StatementBatch(queryUntil: over)
            batch.add(Self.sleep)
            #expect(ending(of: batch, on: connection, until: over) == Ending(code: .busy, losesConnection: false))
            try expectAnswer(from: connection)
        }
    }

    @Test("A transaction that is rolled back after its deadline keeps the connection and its own failure")
    func rollBack() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            try await withConnection { connection in
                _ = try connection.run(StatementBatch(SQLQuery("begin", sql: "BEGIN")), until: over)
                let busy = StoreError(.busy, "The lock was not free.")
                let failure = store.rollBack(after: busy, on: connection, until: over)
                #expect(failure.code == .busy && !failure.losesConnection)
                try expectAnswer(from: connection)
            }
            await store.close()
        }
    }

    @Test("The connection is lost if a server does not respond within the grace")
    func silentServer() async throws {
        try await withConnection { connection in
            let backend = connection.serverProcess
            try #require(backend > 0)
            // The server's process is stopped, so that it cannot respond.
            #expect(kill(backend, SIGSTOP) == 0)
            let outcome = ending(
                of: StatementBatch(Self.one),
                on: connection,
                until: CallDeadline(in: .zero, grace: .zero)
            )
            #expect(kill(backend, SIGCONT) == 0)
            #expect(outcome == Ending(code: .unreachable, losesConnection: true))
        }
    }

    @Test("A worker that is suspended within a transaction stops the others for a second only")
    func suspended() async throws {
        try await PostgresServer.withDatabase { url in
            let address = try DatabaseAddress(url: url)
            let clock = DatabaseClock(local: SystemTime())
            let suspended = try await PostgresStore(at: address, clock: clock, timeout: .seconds(60))
            let other = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let setting = SQLQuery("limit", sql: "SELECT current_setting('idle_in_transaction_session_timeout')")
            let limit = try await suspended.transact { transaction in
                try (transaction as? PostgresTransaction)?.rows(SQLStatement(setting)) { $0.text() }.first
            }
            #expect(limit == "1s")

            let wake = DispatchSemaphore(value: 0)
            let first = PostgresServer.Once()
            let (held, holds) = AsyncStream.makeStream(of: Void.self)
            async let late: Void = suspended.transact { transaction in
                _ = try transaction.user("missing")
                if first.isFirst() {
                    holds.finish()
                    wake.wait()
                }
                try transaction.setClientHealth([1], of: "suspended")
            }
            for await _ in held {}
            try await other.transact { try $0.setClientHealth([2], of: "other") }
            wake.signal()
            // Its transaction was ended, so it runs again.
            try await late
            #expect(try await other.clientHealth() == ["suspended": [1], "other": [2]])
            await suspended.close()
            await other.close()
        }
    }

    @Test("A call whose time is over before it is at the front of the queue does not run")
    func expiredInQueue() async throws {
        try await PostgresServer.withDatabase { url in
            let store = try await PostgresStore.open(url: url, timeout: .seconds(60))
            let error = await #expect(throws: StoreError.self) {
                try await store.writer.run(timeout: .zero) { _, _ throws(StoreError) in
                    Issue.record("the call ran although its time was over")
                }
            }
            #expect(error?.code == .busy)
            await store.close()
        }
    }
}
