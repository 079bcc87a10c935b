import Base
import Foundation

@testable import Records
@testable import RefreshWorker

/// An import from Secrets Manager: secrets as the AWS command line prints them, clocks and a database.
final class SecretsManagerFixture {
    let imports: ImportFixture
    var reports: [String] = []
    var details: [String] = []
    private var secrets: [(name: String, text: String?, storedAt: Double)] = []
    private var errors: [(name: String, code: String, message: String)] = []

    init() throws {
        imports = try ImportFixture()
    }

    /// Stores a secret in place of the one with the same name.
    func put(_ name: String, _ text: String?, storedAt: Double = 1_799_999_000) {
        secrets.removeAll { $0.name == name }
        secrets.append((name, text, storedAt))
    }

    /// Makes the service refuse a secret.
    func refuse(_ name: String, _ code: String, _ message: String = "1//HIDDEN") {
        errors.append((name, code, message))
    }

    /// The output of `aws secretsmanager batch-get-secret-value`, for twenty secrets at a time, as AWS limits it.
    var output: String {
        let parts = stride(from: 0, to: max(1, secrets.count), by: 20).map { start in
            var line = JSONLine()
            line.array("SecretValues") { values in
                for secret in secrets.dropFirst(start).prefix(20) {
                    values.object { value in
                        value.field("ARN", "arn:aws:secretsmanager:eu-west-1:1:secret:\(secret.name)-AbCdEf")
                        value.field("Name", secret.name)
                        if let text = secret.text {
                            value.field("SecretString", text)
                        } else {
                            value.field("SecretBinary", "AAAA")
                        }
                        value.field("CreatedDate", secret.storedAt)
                    }
                }
            }
            line.array("Errors") { errors in
                for error in start == 0 ? self.errors : [] {
                    errors.object { object in
                        object.field("SecretId", error.name)
                        object.field("ErrorCode", error.code)
                        object.field("Message", error.message)
                    }
                }
            }
            return line.text
        }
        return parts.joined(separator: "\n")
    }

    @discardableResult
    func runImport(
        _ existing: ImportedGrantWriter.Existing = .keep,
        isDryRun: Bool = false,
        clientIDs: [String] = ["1-a.apps.googleusercontent.com"],
        input: String? = nil
    ) async throws -> SecretsManagerImport {
        reports = []
        details = []
        var writer = imports.writer(existing)
        writer.isDryRun = isDryRun
        var grants = SecretsManagerImport(
            prefix: SecretsManagerImport.defaultPrefix,
            clientIDs: clientIDs,
            writer: writer,
            time: imports.time,
            report: { self.reports.append($0) },
            detail: { self.details.append($0) }
        )
        try await grants.feed(Array((input ?? output).utf8))
        try await grants.finish()
        return grants
    }
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
