import Crypto
import Foundation
import Storage
import Telemetry
import TestSupport

@testable import Base
@testable import RefreshWorker

/// A folder with a key ring and a database, as an operator finds them; it is removed after the test.
struct OperatorFixture: Sendable {
    let root: String
    /// The clock of the commands too: if they read the machine's, the reports of workers would expire by chance.
    let time = ManualTime(now: SystemTime().now, immediateUpTo: .milliseconds(5))
    let diagnostics: DiagnosticLog

    static func with<Result>(_ body: (OperatorFixture) async throws -> Result) async throws -> Result {
        let fixture = try OperatorFixture()
        let result: Result
        do {
            result = try await body(fixture)
        } catch {
            try fixture.remove()
            throw error
        }
        try fixture.remove()
        return result
    }

    private init() throws {
        root = FileManager.default.temporaryDirectory.appending(path: "operator-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: false)
        diagnostics = DiagnosticLog(level: .error, time: time)
    }

    private func remove() throws { try FileManager.default.removeItem(atPath: root) }

    func path(_ name: String) -> String { root + "/" + name }

    var keyFile: String { path("keys") }
    var database: String { path("grants.sqlite") }

    func write(_ text: String, to name: String, mode: Int = 0o600) throws {
        try Data(text.utf8).write(to: URL(filePath: path(name)))
        try chmod(name, mode)
    }

    func chmod(_ name: String, _ mode: Int) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path(name))
    }

    func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

    var names: [String] {
        get throws { try FileManager.default.contentsOfDirectory(atPath: root).sorted() }
    }

    /// Returns a context for this folder; endpoints lead to a port of this machine without a listener.
    func context(
        _ flags: [(Setting.Name, String)] = [],
        environment: [String: String] = [:]
    ) throws(CommandError) -> CommandContext {
        let endpoints: [Setting.Name] = [.tokenEndpoint, .userinfoEndpoint, .tokeninfoEndpoint, .revocationEndpoint]
        let defaults: [(Setting.Name, String)] =
            [(.keyFile, keyFile), (.database, database)] + endpoints.map { ($0, "http://127.0.0.1:9/") }
        let inputs = ConfigurationInputs(
            flags: (defaults + flags).map { ConfigurationInputs.Flag(name: $0.0, value: $0.1) },
            environment: environment,
            files: .system
        )
        return CommandContext(configuration: try Configuration(inputs), inputs: inputs, time: time)
    }

    func openStore() throws(StoreError) -> SQLiteStore {
        try SQLiteStore(path: database, timeSource: time)
    }

    func openSpill(_ context: CommandContext, vault: TokenVault) async throws -> ResultSpillFile {
        let store = try openStore()
        let database = try await store.databaseID(from: SystemRandom())
        await store.close()
        return context.openSpill(of: database, vault: vault)
    }

    func openVault() throws -> TokenVault {
        let path = keyFile
        return TokenVault(ring: try ReloadableKeyRing { try KeyRingFile.load(path: path) })
    }

    /// Returns a grant whose tokens are "refresh N" and "access N".
    func grant(_ number: Int64, sealedBy vault: TokenVault) throws -> Grant {
        let id = GrantID(rawValue: number)
        let refresh = try vault.seal(refreshToken: Secret("refresh \(number)"), for: id)
        let access = try vault.seal(accessToken: Secret("access \(number)"), for: id)
        let expiry = time.now + .seconds(3600)
        return Grant.connected(
            id: id,
            userID: "user \(number)",
            incoming: IncomingTokens(
                clientID: "client",
                owner: Grant.Owner(),
                scope: "openid",
                refreshToken: refresh,
                accessToken: Grant.AccessToken(sealed: access, obtainedAt: time.now, expiresAt: expiry)
            ),
            dueAt: expiry,
            at: time.now
        ).grant
    }

    func insert(_ numbers: ClosedRange<Int64>, sealedBy vault: TokenVault, into store: any Store) async throws {
        let grants = try numbers.map { try grant($0, sealedBy: vault) }
        try await store.transact { transaction in
            for grant in grants { try transaction.insert(grant) }
        }
    }
}

extension CommandContext {
    /// Runs the command of these arguments.
    func run(_ arguments: [String]) async throws -> ExitCode {
        try await Command.program.parse(arguments).run(in: self)
    }
}

/// Returns an object with the fields that the closure writes.
func written(_ write: (inout JSONLine) -> Void) -> JSONLine {
    var line = JSONLine()
    write(&line)
    return line
}
