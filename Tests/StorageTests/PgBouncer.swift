import Crypto
import Foundation
import TestSupport
import Testing

/// A pooler before the server of the tests.
enum PgBouncer {
    /// Calls `body` with the URL of a new, empty database through a pooler.
    static func withDatabase(mode: String, poolSize: Int = 4, _ body: (Secret) async throws -> Void) async throws {
        let direct = try #require(PostgresServer.url)
        let server = try #require(direct.firstMatch(of: /host=(.*)$/)?.1)
        try await TemporaryFolder.with(onDisk: true) { folder in
            let socket = folder.root
            try await with(folder: socket, server: String(server), mode: mode, poolSize: poolSize) {
                try await PostgresServer.withDatabase { direct in
                    try await body(
                        Secret(direct.reveal().replacing("host=\(server)", with: "host=\(socket)&port=6432"))
                    )
                }
            }
        }
    }

    private static func with(
        folder: String,
        server: String,
        mode: String,
        poolSize: Int,
        _ body: () async throws -> Void
    ) async throws {
        let settings = """
            [databases]
            * = host=\(server)
            [pgbouncer]
            listen_addr =
            unix_socket_dir = \(folder)
            listen_port = 6432
            auth_type = trust
            auth_file = \(folder)/users
            pool_mode = \(mode)
            default_pool_size = \(poolSize)
            max_client_conn = 200
            pidfile = \(folder)/pid
            logfile = \(folder)/log
            """
        try Data(settings.utf8).write(to: URL(fileURLWithPath: folder + "/settings"))
        try Data("\"postgres\" \"\"".utf8).write(to: URL(fileURLWithPath: folder + "/users"))
        var words = ["pgbouncer", "-q", "-d", folder + "/settings"]
        if getuid() == 0 {
            // It refuses to run as root.
            _ = try await ChildProcess.run(["chown", "-R", "postgres", folder])
            words = ["runuser", "-u", "postgres", "--"] + words
        }
        _ = try await ChildProcess.run(words)
        try await poll { FileManager.default.fileExists(atPath: folder + "/.s.PGSQL.6432") }
        let outcome: Result<Void, any Error>
        do {
            try await body()
            outcome = .success(())
        } catch {
            outcome = .failure(error)
        }
        let file = try String(contentsOfFile: folder + "/pid", encoding: .utf8)
        let pid = try #require(pid_t(file.trimmingCharacters(in: .newlines)))
        #expect(kill(pid, SIGTERM) == 0)
        try await poll { !FileManager.default.fileExists(atPath: "/proc/\(pid)") }
        try outcome.get()
    }
}
