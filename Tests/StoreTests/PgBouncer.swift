import Foundation
import Secrets
import TestSupport
import Testing

/// A pooler in transaction mode before a server, on a socket in a folder.
enum PgBouncer {
    static func with(folder: String, server: String, _ body: () async throws -> Void) async throws {
        let settings = """
            [databases]
            * = host=\(server)
            [pgbouncer]
            listen_addr =
            unix_socket_dir = \(folder)
            listen_port = 6432
            auth_type = trust
            auth_file = \(folder)/users
            pool_mode = transaction
            default_pool_size = 4
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
