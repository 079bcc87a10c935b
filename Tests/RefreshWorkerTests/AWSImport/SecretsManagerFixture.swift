import Base
import Crypto
import Foundation
import HTTPClient
import Synchronization
import TestSupport

@testable import Commands
@testable import Worker

/// An import from Secrets Manager: a scripted service, clocks, a database, and a client that never waits.
final class SecretsManagerFixture {
    let imports: ImportFixture
    let service: SecretsService
    let server: ScriptedServer
    private let endpoint: Endpoint
    let http: HTTPClient
    let pauses = Pauses()
    var reports: [String] = []
    var details: [String] = []

    final class Pauses: Sendable {
        private let all = Mutex<[Duration]>([])

        var list: [Duration] { all.withLock { $0 } }

        func add(_ pause: Duration) { all.withLock { $0.append(pause) } }
    }

    init() throws {
        imports = try ImportFixture()
        let service = SecretsService()
        self.service = service
        server = try ScriptedServer { service.steps(for: $0) }
        endpoint = try Endpoint(server.url)
        http = try HTTPClient()
    }

    deinit {
        http.shutDown()
        server.stop()
    }

    var client: SecretsManagerClient {
        let pauses = pauses
        return SecretsManagerClient(
            http: http,
            endpoint: endpoint,
            region: "eu-west-1",
            credentials: AWSCredentials(keyID: Secret("AKID"), secretKey: Secret("KEYSECRET")),
            random: SystemRandom(),
            pause: { pauses.add($0) }
        )
    }

    var options: SecretsManagerOptions { SecretsManagerOptions(prefix: "gmail/user/", region: "eu-west-1") }

    @discardableResult
    func runImport(
        _ existing: ImportedGrantWriter.Existing = .keep,
        isDryRun: Bool = false
    ) async throws -> SecretsManagerImport.Tally {
        reports = []
        details = []
        var writer = imports.writer(existing)
        writer.isDryRun = isDryRun
        var grants = SecretsManagerImport(
            secrets: SecretsManagerReader(
                client: client,
                prefix: options.prefix,
                clientIDs: ["1-a.apps.googleusercontent.com"],
                time: imports.time
            ),
            writer: writer,
            report: { self.reports.append($0) },
            detail: { self.details.append($0) }
        )
        try await grants.run { _ in }
        return grants.tally
    }
}

/// A fake AWS Secrets Manager, with the operations that an import uses.
final class SecretsService: Sendable {
    struct StoredSecret: Sendable {
        var text: String?
        var storedAt: Double = 1_799_999_000
        var isMarkedDeleted = false
    }

    /// Answers a request in place of the service; `nil` lets the service answer.
    typealias Interceptor = @Sendable (_ operation: String, _ secret: String?, _ number: Int) -> [ScriptedServer.Step]?

    private struct State {
        var secrets: [String: StoredSecret] = [:]
        var interceptor: Interceptor = { _, _, _ in nil }
        var calls: [(operation: String, body: JSONValue)] = []
    }

    private let state = Mutex(State())

    func put(_ name: String, _ text: String?, storedAt: Double = 1_799_999_000, isMarkedDeleted: Bool = false) {
        let stored = StoredSecret(text: text, storedAt: storedAt, isMarkedDeleted: isMarkedDeleted)
        state.withLock { $0.secrets[name] = stored }
    }

    func intercept(_ interceptor: @escaping Interceptor) { state.withLock { $0.interceptor = interceptor } }

    var calls: [(operation: String, body: JSONValue)] { state.withLock { $0.calls } }

    func forgetCalls() { state.withLock { $0.calls = [] } }

    func steps(for request: ScriptedServer.Received) -> [ScriptedServer.Step] {
        let target = request.head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("x-amz-target:") }
        let operation = String(target?.split(separator: ".").last ?? "")
        guard let members = JSONValue.object(in: request.body) else { return fault(400, "SerializationException") }
        let (secrets, interceptor) = state.withLock { state in
            state.calls.append((operation, members))
            return (state.secrets, state.interceptor)
        }
        let name = members["SecretId"]?.string
        if let steps = interceptor(operation, name, request.number) { return steps }
        guard operation == "GetSecretValue" else { return page(of: secrets, request: members) }
        guard let name, let secret = secrets[name] else { return fault(400, "ResourceNotFoundException") }
        guard !secret.isMarkedDeleted else {
            return fault(400, "InvalidRequestException", "… because it was marked for deletion.")
        }
        var line = JSONLine()
        line.field("Name", name)
        line.field("CreatedDate", secret.storedAt)
        if let text = secret.text { line.field("SecretString", text) } else { line.field("SecretBinary", "AAAA") }
        return answer(line.text)
    }

    /// Returns every secret whatever the filter, so that the reader's own check must exclude the others.
    private func page(of secrets: [String: StoredSecret], request: JSONValue) -> [ScriptedServer.Step] {
        let names = secrets.keys.sorted()
        let start = request["NextToken"]?.string.flatMap { Int($0) } ?? 0
        let end = min(names.count, start + Int(request["MaxResults"]?.integer ?? 0))
        var line = JSONLine()
        line.array("SecretList") { list in
            for name in names[start..<end] {
                list.object { entry in
                    entry.field("Name", name)
                    if secrets[name]?.isMarkedDeleted == true { entry.field("DeletedDate", 1_799_999_999.5) }
                }
            }
        }
        if end < names.count { line.field("NextToken", "\(end)") }
        return answer(line.text)
    }
}

/// Returns an error in the form of the service.
func fault(_ status: Int, _ code: String, _ message: String = "KEYSECRET in text") -> [ScriptedServer.Step] {
    var line = JSONLine()
    line.field("__type", "com.amazonaws.secretsmanager#\(code)")
    line.field("Message", message)
    return answer(line.text, status: "\(status) No")
}

/// Returns the JSON of a grant as the backend stored it, with the members of the contract.
func secretText(_ user: String, _ changes: [String: (any Sendable)?] = [:]) throws -> String {
    var members: [String: any Sendable] = [
        "access_token": "ya29.access-\(user)", "refresh_token": "1//refresh-\(user)",
        "expires_at": "2027-01-15T08:30:00.123456", "expires_in": 3599, "scope": "openid email", "token_type": "Bearer",
        "created_at": "2027-01-15T07:30:00.123456", "google_user_id": "", "google_email": "\(user)@example.com",
        "google_name": "N", "google_verified_email": true,
    ]
    for (name, value) in changes { members[name] = value }
    return String(decoding: try JSONSerialization.data(withJSONObject: members), as: UTF8.self)
}
