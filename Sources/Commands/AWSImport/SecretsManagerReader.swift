import Base
import Worker

/// Reads grants from secrets: the user from the name, the grant from the content.
struct SecretsManagerReader: Sendable {
    /// A secret and the user in its name.
    struct UserSecret: Sendable {
        let secret: String
        let userID: String
    }

    /// The result of reading one secret.
    enum ReadResult: Sendable {
        case grant(ImportedGrant)
        case deleted
        case bad(ImportProblem)

        var grant: ImportedGrant? {
            guard case .grant(let grant) = self else { return nil }
            return grant
        }
    }

    /// The limit of calls in flight: far below the service's limits, so that other users of the account are not
    /// affected (https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html).
    static let concurrency = 8

    let client: SecretsManagerClient
    let prefix: String
    /// The client ids; if there is exactly one, it is used for secrets that do not name one.
    let clientIDs: [String]
    let time: any TimeSource

    /// Reads the client id that the backend kept next to its grants.
    static func clientID(from client: SecretsManagerClient) async throws -> String {
        let name = SecretsManagerOptions.clientIDName
        guard let text = try await client.value(of: name).text else {
            throw CommandFailure(.badData, "the secret \(name) is binary, not text: give --client-id")
        }
        do throws(SettingValue.Refusal) {
            let trimmed = String(text.split(whereSeparator: \.isWhitespace).joined(separator: " "))
            try SettingValue.checkText(trimmed)
            return try SettingValue.clientID(trimmed)
        } catch {
            throw CommandFailure(
                .badData,
                "the secret \(name) is not a client id (give --client-id): it \(error.message)"
            )
        }
    }

    func page(after token: String?) async throws -> SecretsManagerClient.Page {
        try await client.page(prefix: prefix, after: token)
    }

    /// Returns the user of a secret; `nil` if its name has another prefix, because the service also matches by words.
    func named(_ listed: SecretsManagerClient.ListedSecret) -> UserSecret? {
        guard listed.name.utf8.starts(with: prefix.utf8) else { return nil }
        let user = listed.name.utf8.dropFirst(prefix.utf8.count)
        return user.isEmpty ? nil : UserSecret(secret: listed.name, userID: String(decoding: user, as: UTF8.self))
    }

    /// Reads secrets concurrently and returns the results in order.
    ///
    /// A secret that may not be read is a bad record like any other. If all of them are denied, the credentials are
    /// wrong, and the fault is thrown; pass `allowsAllDenied` if other secrets could be read before.
    func grants(of secrets: [UserSecret], allowsAllDenied: Bool) async throws -> [ReadResult] {
        let results = try await withThrowingTaskGroup(of: (Int, Result<ReadResult, SecretsManagerFault>).self) {
            group in
            var results: [Result<ReadResult, SecretsManagerFault>?] = Array(repeating: nil, count: secrets.count)
            var started = 0
            while started < min(Self.concurrency, secrets.count) {
                add(secrets[started], at: started, to: &group)
                started += 1
            }
            while let (position, result) = try await group.next() {
                results[position] = result
                guard started < secrets.count else { continue }
                add(secrets[started], at: started, to: &group)
                started += 1
            }
            return results.compactMap(\.self)
        }
        let denials = results.compactMap { result in
            if case .failure(let fault) = result { fault } else { nil }
        }
        if !allowsAllDenied, denials.count == results.count, let fault = denials.first { throw fault }
        return results.map { result in
            switch result {
            case .success(let reading): reading
            case .failure(let fault): .bad(ImportProblem("may not be read (\(fault.code))"))
            }
        }
    }

    private typealias Group = ThrowingTaskGroup<(Int, Result<ReadResult, SecretsManagerFault>), any Error>

    private func add(_ secret: UserSecret, at position: Int, to group: inout Group) {
        group.addTask { (position, try await read(secret)) }
    }

    /// Reads one secret.
    ///
    /// A problem of this secret alone is a result; any other problem is thrown and ends the import.
    private func read(_ named: UserSecret) async throws -> Result<ReadResult, SecretsManagerFault> {
        let value: SecretsManagerClient.Value
        do {
            value = try await client.value(of: named.secret)
        } catch let fault as SecretsManagerFault {
            switch fault.kind {
            case .missing, .markedDeleted: return .success(.deleted)
            case .denied, .undecryptable: return .failure(fault)
            default: throw fault
            }
        }
        do throws(ImportProblem) {
            return .success(.grant(try grant(in: value, of: named)))
        } catch {
            return .success(.bad(error))
        }
    }

    private func grant(
        in value: SecretsManagerClient.Value,
        of named: UserSecret
    ) throws(ImportProblem) -> ImportedGrant {
        guard let text = value.text else { throw ImportProblem("is binary, not text") }
        let record = RecordSplitter.Record(line: 1, content: .text(Array(text.utf8)))
        var grant = try GrantReader(clientIDs: clientIDs, userID: named.userID).grant(from: record, at: time.now)
        guard grant.userID.utf8.elementsEqual(named.userID.utf8) else {
            throw ImportProblem("user_id names another user than the secret's name")
        }
        // The content cannot be newer than the version that contains it, even if its dates say so.
        grant.obtainedAt = [grant.obtainedAt, value.storedAt].compactMap(\.self).min()
        return grant
    }
}
