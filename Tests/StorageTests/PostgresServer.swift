import Base
import Crypto
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Storage

/// The PostgreSQL server that `scripts/test` starts: each test has a database of its own.
enum PostgresServer {
    static let variable = "REFRESH_WORKER_TEST_DATABASE"

    /// The URL of the server's database `postgres`, if there is a server.
    static let url = ProcessInfo.processInfo.environment[variable]

    /// Runs `body` with the URL of a new, empty database, which is dropped afterwards.
    static func withDatabase<Result>(_ body: (Secret) async throws -> Result) async throws -> Result {
        let url = try url.orThrow("\(variable) is not set")
        let name = newName()
        try await run("CREATE DATABASE \(name)", on: url)
        let result: Result
        do {
            result = try await body(Secret(url.replacing("/postgres?", with: "/\(name)?")))
        } catch {
            try await run("DROP DATABASE \(name) WITH (FORCE)", on: url)
            throw error
        }
        try await run("DROP DATABASE \(name) WITH (FORCE)", on: url)
        return result
    }

    private static let reusedDatabases = ReusedDatabases()

    /// Runs `body` with the URL of an empty database that another test might have used, and that another one might use
    /// afterwards.
    ///
    /// To create a database takes a fifth of a second of a processor, which is most of what a test of a store takes.
    /// `body` leaves nothing outside of this program's schema. That has a name that statements must quote: most other
    /// tests use the standard one.
    static func withReusedDatabase<Result>(_ body: (Secret) async throws -> Result) async throws -> Result {
        let url = try url.orThrow("\(variable) is not set")
        let former = await reusedDatabases.take()
        let name = former ?? newName()
        let database = url.replacing("/postgres?", with: "/\(name)?")
        let result: Result
        do {
            if former == nil { try await run("CREATE DATABASE \(name)", on: url) }
            result = try await body(Secret("\(database)&schema=user"))
            // A body that leaves a transaction open fails, and does not wait for it.
            let settings = "SET client_min_messages = error; SET lock_timeout = '60s'"
            try await run("\(settings); DROP SCHEMA IF EXISTS \"user\" CASCADE", on: database)
            let standard = "SELECT to_regnamespace('refresh_worker') IS NULL"
            guard try await run(standard, on: database) == "t\n" else {
                throw StoreError(.fault, "a statement for another schema has used the standard one")
            }
        } catch {
            await reusedDatabases.give(nil)
            try await run("DROP DATABASE IF EXISTS \(name) WITH (FORCE)", on: url)
            throw error
        }
        await reusedDatabases.give(name)
        return result
    }

    private static func newName() -> String { "test_" + UUID().uuidString.replacing("-", with: "").lowercased() }

    /// Runs SQL as the administrator, and returns the output of `psql`.
    @discardableResult
    static func run(_ statement: String, on url: String) async throws -> String {
        try await ChildProcess.run(
            ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"]
                + ["--command=\(statement)", url]
        )
    }
}

/// A few databases that tests use one after the other.
private actor ReusedDatabases {
    private static let maximum = 8

    private var inUse = 0
    private var empty: [String] = []
    private var waiting: [CheckedContinuation<Void, Never>] = []

    /// Waits for a turn, and returns an empty database, or `nil` if the caller has to create one.
    func take() async -> String? {
        if inUse < Self.maximum {
            inUse += 1
        } else {
            // The one that gives its turn back leaves it counted.
            await withCheckedContinuation { waiting.append($0) }
        }
        return empty.popLast()
    }

    /// Ends a turn, and keeps the database, which is empty again.
    func give(_ database: String?) {
        if let database { empty.append(database) }
        if waiting.isEmpty {
            inUse -= 1
        } else {
            waiting.removeFirst().resume()
        }
    }
}

extension Optional {
    fileprivate func orThrow(_ message: String) throws -> Wrapped {
        guard let self else { throw StoreError(.fault, message) }
        return self
    }
}

/// A child process that a test waits for.
enum ChildProcess {
    @discardableResult
    static func run(_ words: [String]) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async {
                continuation.resume(with: Result { try runNow(words) })
            }
        }
    }

    /// Runs a program with `posix_spawn`, since Foundation's `Process` also waits for processes that it leaves behind,
    /// such as a server.
    @discardableResult
    static func runNow(_ words: [String]) throws -> String {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("output-\(UUID().uuidString)")
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output.path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // The threads that run tests block signals, and a server that inherited that could not be stopped.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let arguments = words.map { strdup($0) } + [nil]
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let code = posix_spawnp(&child, words[0], &actions, &attributes, arguments, environ)
        guard code == 0 else { throw StoreError(.fault, "\(words[0]): \(String(cString: strerror(code)))") }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        let text = try String(contentsOf: output, encoding: .utf8)
        try FileManager.default.removeItem(at: output)
        guard status == 0 else { throw StoreError(.fault, "\(words.joined(separator: " ")): \(text)") }
        return text
    }
}

extension PostgresServer {
    /// The reason why tests are skipped.
    static let skipped: Comment = "there is no PostgreSQL server: run scripts/test, which starts one"

    /// Returns `true` to the first caller only.
    final class Once: Sendable {
        private let asked = Mutex(false)

        func isFirst() -> Bool {
            asked.withLock { asked in
                defer { asked = true }
                return !asked
            }
        }
    }

    private static func ending(of url: String) throws -> (statement: String, admin: String) {
        let name = try (url.firstMatch(of: /test_\w+/)?.0).map(String.init).orThrow("\(url) has no test database")
        let statement = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '\(name)'"
        return (statement, try self.url.orThrow("\(variable) is not set"))
    }

    /// Opens a store with a short timeout, and tries again until that succeeds on a busy machine.
    static func openWithTimeout(_ url: Secret, timeout: Duration) async throws -> PostgresStore {
        while true {
            do {
                return try await PostgresStore.open(url: url, timeout: timeout)
            } catch {
                guard error.mayPass else { throw error }
            }
        }
    }

    /// Returns the error of the readiness check, repeated while the server does not respond in its short time; `nil` if
    /// it succeeds.
    static func check(_ store: PostgresStore) async throws -> StoreError.Code? {
        while true {
            do {
                try await store.checkUsable()
                return nil
            } catch let error as StoreError where [.busy, .unreachable].contains(error.code) {
                continue
            } catch let error as StoreError {
                return error.code
            }
        }
    }

    /// Ends all sessions of a database, as an administrator may, and waits until they are closed; new ones may have
    /// been opened.
    static func endSessions(of url: Secret) async throws {
        let (statement, admin) = try ending(of: url.reveal())
        let list = statement.replacing(
            "count(pg_terminate_backend(pid))",
            with: "coalesce(string_agg(pid::text, ','), '0')"
        )
        let processes = try await run(list, on: admin).split(separator: "\n").joined()
        let condition = "FROM pg_stat_activity WHERE pid IN (\(processes))"
        try await run("SELECT count(pg_terminate_backend(pid)) \(condition)", on: admin)
        try await poll { try await run("SELECT count(*) \(condition)", on: admin).first == "0" }
    }

    /// Ends all sessions of a database without waiting, for a body that is not async.
    static func endSessionsNow(of url: String) throws {
        let (statement, admin) = try ending(of: url)
        try ChildProcess.runNow(["psql", "--no-psqlrc", "--quiet", "--command=\(statement)", admin])
    }

    /// Runs `scripts/postgres-for-tests` for a server of one test; `start` and `standby` return its URL.
    @discardableResult
    static func control(_ action: String, _ folder: String, _ more: String...) async throws -> String {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../scripts/postgres-for-tests").standardized.path
        return try await ChildProcess.run([script, action, folder] + more).split(separator: "\n").joined()
    }
}

extension PostgresStore {
    /// Opens the database at a URL.
    ///
    /// Its transactions can be idle for long, because many tests hold one open.
    static func open(
        url: Secret,
        local: any TimeSource = SystemTime(),
        random: any RandomSource = SystemRandom(),
        timeout: Duration = .seconds(10),
        keepsNotices: Bool = false,
        leaseClock: (any TimeSource)? = nil
    ) async throws(StoreError) -> PostgresStore {
        try await PostgresStore(
            at: try DatabaseAddress(url: url),
            clock: DatabaseClock(local: local),
            random: random,
            timeout: timeout,
            keepsNotices: keepsNotices,
            leaseClock: leaseClock,
            idleLimit: .seconds(600)
        )
    }
}
