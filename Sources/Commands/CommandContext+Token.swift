import Base
import Crypto
import HTTPClient
import HTTPServer
import Routes
import Scheduler
import Storage
import Telemetry
package import Worker

/// `token USER`: prints one fresh access token.
extension CommandContext {
    private static let vendTimeout: Duration = .seconds(40)

    package func vendToken(of user: String, minimumLife: Duration, isJSON: Bool) async throws -> ExitCode {
        let vault = try openVault()
        let store = try await openExistingStore(for: .changing)
        let http = try openHTTP()
        let spill = openSpill(vault: vault)
        let engine = openEngine(
            store: store,
            vault: vault,
            http: http,
            log: quietLog(),
            spill: spill,
            clientSecrets: try Self.clientSecrets(of: configuration)
        )
        let heartbeat = WorkerHeartbeat(
            store: store,
            ring: vault.ring,
            workerName: workerName,
            diagnostics: diagnostics
        )
        // The limit of the wait for a database that does not accept the answer.
        let limit = Task {
            try await time.sleep(for: Self.vendTimeout)
            report(await engine.stop(within: .zero), in: spill)
        }
        defer { limit.cancel() }
        // An answer in flight may be the only copy of a rotated refresh token.
        let stopDeadline = min(configuration.stopDeadline, Self.longestStop)
        let end = await untilSignal(stopping: engine, within: stopDeadline, spill: spill) {
            try await heartbeat.report()
            do {
                return try await engine.freshToken(of: user, minimumLife: minimumLife)
            } catch {
                guard !vault.ring.missingKeys.isEmpty else { throw error }
                // A second report finds out whether another worker has the unknown key.
                try await heartbeat.report()
                return try await engine.freshToken(of: user, minimumLife: minimumLife)
            }
        }
        await heartbeat.leave()
        await store.close()
        http.shutDown()
        let outcome: Result<VendedToken, any Error>
        switch end {
        case .finished(let result): outcome = result
        case .stopped(let signal): return ExitCode(signal)
        }
        let token: VendedToken
        do {
            token = try outcome.get()
        } catch let failure as VendingFailure {
            throw CommandFailure(failure, ofUser: user)
        }
        if let warning = token.warning {
            diagnostics.warning("this is the stored token; the last refresh of the grant failed", ["reason": warning])
        }
        // The token is printed because the operator asked for it.
        guard isJSON else {
            Output.standard.line(token.accessToken.reveal())
            return .success
        }
        var line = JSONLine()
        token.write(to: &line, at: time.now)
        Output.standard.line(line.bytes)
        return .success
    }
}

/// The output of `--version`: the program, and the libraries that it runs with.
package enum VersionReport {
    package static var text: String {
        (["refresh-worker \(Version.withCommit)"] + libraries.map { "\($0.name) \($0.version)" }).joined(
            separator: "\n"
        )
    }

    /// The same as a JSON object.
    package static var json: String {
        var line = JSONLine()
        line.field("version", Version.current)
        line.fieldOrNull("commit", Version.commit)
        line.object("libraries") { object in
            for library in libraries { object.field(library.name, library.version) }
        }
        return line.text
    }

    private static var libraries: [(name: String, version: String)] {
        [
            ("libcurl", CurlLibrary.version),
            ("nghttp2", CurlLibrary.versionOfHTTP2Framing),
            ("SQLite", SQLiteLibrary.version),
            ("OpenSSL", OpenSSLLibrary.version),
            ("libpq", PostgresLibrary.version),
            ("libmicrohttpd", MicroHTTPLibrary.version),
            ("GnuTLS", MicroHTTPLibrary.versionOfGnuTLS),
        ]
    }
}
