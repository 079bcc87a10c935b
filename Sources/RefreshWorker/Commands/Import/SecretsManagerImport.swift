import Base
import Records

/// Imports grants from the secrets of AWS Secrets Manager, as the AWS command line prints them.
///
/// It reads the output of `aws secretsmanager batch-get-secret-value` and of `get-secret-value`. The name of a secret
/// is a prefix and the user, its text is the JSON of a grant of the user.
struct SecretsManagerImport: RecordImport {
    /// The name of the secret whose text is the client id.
    static let clientIDName = "Google-OAuth-Client-ID"
    /// The usual prefix of the names, before the user's id.
    static let defaultPrefix = "gmail/user/"

    let prefix: String
    /// The client ids of this installation. If there is not exactly one, the secret of the client id replaces them.
    var clientIDs: [String]
    let writer: ImportedGrantWriter
    let time: any TimeSource
    let report: (String) -> Void
    /// Receives a line about the outcome of each good secret.
    let detail: (String) -> Void

    var tally = ImportTally()
    var splitter = RecordSplitter()
    var batch: [ImportReading<ImportedGrant>] = []
    /// The number of secrets that were deleted, or marked for it, after they had been listed.
    private(set) var deleted = 0

    mutating func read(_ record: RecordSplitter.Record) -> [ImportReading<ImportedGrant>] {
        let place = record.place
        let members: [String: JSONValue]
        do throws(InputError) {
            members = try record.members()
        } catch {
            return [ImportReading(place: place, result: .failure(error))]
        }
        guard let secrets = members["SecretValues"]?.array else {
            return [read(secret: members, place)].compactMap(\.self)
        }
        var values = secrets.compactMap { read(secret: $0.object ?? [:], place) }
        values += (members["Errors"]?.array ?? []).compactMap { read(error: $0.object ?? [:]) }
        if members["NextToken"]?.string?.isEmpty == false {
            let problem = InputError("is one page of several: import-from-aws reads them all")
            values.append(ImportReading(place: place, result: .failure(problem)))
        }
        return values
    }

    /// Returns the grant of a secret, or `nil` for a secret that is not about a user.
    private mutating func read(secret members: [String: JSONValue], _ place: String) -> ImportReading<ImportedGrant>? {
        guard let name = members["Name"]?.string else {
            let problem = "not the output of aws secretsmanager batch-get-secret-value or get-secret-value"
            return ImportReading(place: place, result: .failure(InputError(problem)))
        }
        let user = name.utf8.dropFirst(prefix.utf8.count)
        let isOfUser = name.utf8.starts(with: prefix.utf8) && !user.isEmpty
        guard isOfUser || name == Self.clientIDName else { return nil }
        do throws(InputError) {
            guard let text = members["SecretString"]?.string else { throw InputError("is binary, not text") }
            guard isOfUser else {
                try takeClientID(text)
                return nil
            }
            let storedAt = try RecordFields(members: members).instant("CreatedDate")
            let grant = try grant(in: text, of: String(decoding: user, as: UTF8.self), storedAt: storedAt)
            return ImportReading(place: Self.place(of: name), result: .success(grant))
        } catch {
            // The name says more than the user in it.
            return ImportReading(place: Self.place(of: name), result: .failure(InputError(error.message)))
        }
    }

    private mutating func takeClientID(_ text: String) throws(InputError) {
        guard clientIDs.count != 1 else { return }
        do throws(InputError) {
            let trimmed = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            try InputText.checkText(trimmed)
            clientIDs = [try InputText.clientID(trimmed)]
        } catch {
            throw InputError("is not a client id (give --client-id): it \(error.message)")
        }
    }

    private func grant(in text: String, of user: String, storedAt: Timestamp?) throws(InputError) -> ImportedGrant {
        let record = RecordSplitter.Record(line: 1, content: .text(Array(text.utf8)))
        var grant = try ImportedGrant(reading: record, clientIDs: clientIDs, userID: user, at: time.now)
        guard grant.userID.utf8.elementsEqual(user.utf8) else {
            throw InputError("user_id names another user than the secret's name")
        }
        try writer.check(grant)
        // The content cannot be newer than the version that contains it, even if its dates say so.
        grant.obtainedAt = [grant.obtainedAt, storedAt].compactMap(\.self).min()
        return grant
    }

    /// Counts a secret that could not be read: the service's message is not shown, because it can hold more than names.
    private mutating func read(error members: [String: JSONValue]) -> ImportReading<ImportedGrant>? {
        let (code, message) = (members["ErrorCode"]?.string ?? "", members["Message"]?.string ?? "")
        // https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_BatchGetSecretValue.html
        if code == "ResourceNotFoundException" || code == "InvalidRequestException" && message.contains("delet") {
            deleted += 1
            return nil
        }
        let isName = (1...64).contains(code.utf8.count) && code.allSatisfy { $0.isASCII && $0.isLetter }
        let problem = InputError("cannot be read (\(isName ? code : "for an unknown reason"))")
        return ImportReading(
            place: Self.place(of: members["SecretId"]?.string ?? ""),
            result: .failure(problem)
        )
    }

    private static func place(of name: String) -> String { "secret \(DisplayedText(name))" }

    func store(_ batch: [ImportedGrant]) async throws -> [ImportedGrantWriter.Outcome] {
        try await writer.store(batch)
    }

    mutating func count(_ outcome: ImportedGrantWriter.Outcome, of grant: ImportedGrant, at place: String) {
        let user = "user \(DisplayedText(grant.userID))\(grant.connection.clause)"
        switch outcome {
        case .stored:
            tally.stored += 1
            detail("\(user): \(writer.isDryRun ? "would be " : "")stored")
        case .replaced:
            tally.replaced += 1
            detail("\(user): \(writer.isDryRun ? "would be " : "")replaced")
        case .kept:
            tally.kept += 1
            let reason =
                writer.existing == .keep ? "is stored already" : "is stored already, and the secret is not newer"
            detail("\(user) \(reason): kept")
        case .keptEnded:
            tally.kept += 1
            detail("\(user) \(GrantImport.endedGrant)")
        case .accountConnected(let other):
            tally.kept += 1
            detail("\(user) \(GrantImport.connectedAccount(other))")
        case .refused:
            tally.deletedHere += 1
            detail("\(user) \(GrantImport.deletedUser)")
        }
    }

    func summary(isDryRun: Bool) -> String {
        "\(tally.read + deleted) secrets: \(tally.counts(isDryRun: isDryRun)), \(deleted) deleted, under \(prefix)"
    }

    var json: JSONLine {
        var line = tally.json
        line.field("deleted", deleted)
        return line
    }
}
