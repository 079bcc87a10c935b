import Base
import Crypto
import Storage
import Telemetry
import Worker

/// `grants export --plaintext`: writes everything that `grants import` needs to import the grants elsewhere.
struct ExportGrants: Command {
    static let specification = CommandSpecification(
        words: ["grants", "export"],
        summary: "write all grants as JSON lines",
        discussion: """
            Writes all grants with their states to standard output, in the form that grants import reads. The tokens \
            are in plain text, so --plaintext is required. To move a whole database sealed, use refresh-worker backup. \
            A grant whose tokens cannot be opened with the key ring is reported and left out, and the exit code is 78.
            """,
        options: [
            .toggle("plaintext", "confirm that the output contains usable tokens")
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            Example(
                "refresh-worker grants export --plaintext | age -r KEY > grants.jsonl.age",
                "encrypt the tokens before they reach the disk"
            )
        ],
        exitCodes: .ofDatabase()
    )

    private let isPlaintext: Bool

    init(_ arguments: CommandArguments) { isPlaintext = arguments.has("plaintext") }

    func run(in context: CommandContext) async throws -> ExitCode {
        guard isPlaintext else {
            throw CommandFailure(
                .usage,
                """
                an export holds every token in plain text, usable by every reader: give --plaintext to confirm
                to keep or move the grants sealed, use 'refresh-worker backup FILE' and take the key file along
                """
            )
        }
        let vault = try context.openVault()
        let store = try await context.openExistingStore(for: .reading)
        let output = BlockingCallQueue(label: "refresh-worker.output")
        var unreadable = 0
        for try await page in GrantPages(store: store, state: nil, size: ListGrants.pageSize) {
            let export = GrantExport(page: page, vault: vault)
            for problem in export.problems { Output.error.line("refresh-worker: \(problem)") }
            unreadable += export.problems.count
            if !export.text.isEmpty {
                try await output.run { Output.standard.write(export.text) }
            }
        }
        await store.close()
        guard unreadable == 0 else {
            throw CommandFailure(
                .configuration,
                "\(unreadable) grants are not in the export, because the key ring does not open their tokens"
            )
        }
        return .success
    }
}

/// One page of an export, in plain text.
struct GrantExport: Sendable {
    /// One line for each grant that can be opened.
    private(set) var text = ""
    /// One line for each grant that cannot be opened.
    private(set) var problems: [String] = []

    init(page: [Grant], vault: TokenVault) {
        for grant in page {
            do throws(SealError) {
                text += try GrantDocument.exported(grant, from: vault).text + "\n"
            } catch {
                problems.append("user \(DisplayedText(grant.userID)): a stored token cannot be opened: \(error)")
            }
        }
    }
}

/// A grant as JSON: the output of `grants list`, `grants show` and `grants export`.
enum GrantDocument {
    /// Adds all fields except the tokens.
    static func write(_ grant: Grant, to line: inout JSONLine) {
        line.field("user_id", grant.userID)
        line.field("state", grant.state.rawValue)
        line.fieldOrNull("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        line.field("since", grant.since.iso8601)
        line.fieldOrNull("google_email", grant.owner.email)
        line.fieldOrNull("scope", grant.scope.isEmpty ? nil : grant.scope)
        line.field("client_id", grant.clientID)
        line.fieldOrNull("expires_at", grant.accessToken?.expiresAt.iso8601)
        line.fieldOrNull("due_at", grant.dueAt?.iso8601)
        line.fieldOrNull("last_success_at", grant.lastSuccessAt?.iso8601)
        line.field("attempts", grant.attempts)
        line.field("generation", grant.generation)
        line.field("grant", grant.id.description)
    }

    /// Adds the fields of an event of a grant's history.
    static func write(_ event: GrantEvent, to line: inout JSONLine) {
        line.field("at", event.at.iso8601)
        line.field("event", event.kind.rawValue)
        line.fieldOrNull("from", event.from?.rawValue)
        line.field("to", event.to.rawValue)
        line.fieldOrNull("reason", event.reason == .none ? nil : event.reason.rawValue)
        line.field("generation", event.generation)
        line.field("grant", event.grant.description)
    }

    /// Adds the same fields and the grant's warnings.
    static func writeWithWarnings(_ grant: Grant, to line: inout JSONLine, at now: Timestamp) {
        write(grant, to: &line)
        line.fieldOrNull("refresh_token_expires_at", grant.refreshToken?.expiresAt?.iso8601)
        line.array("warnings") { warnings in
            for warning in GrantWarning.all(of: grant, at: now) { warnings.element(warning.rawValue) }
        }
    }

    /// Returns all fields that `grants import` reads, including the tokens.
    ///
    /// Unknown members are left out.
    static func exported(_ grant: Grant, from vault: TokenVault) throws(SealError) -> JSONLine {
        // If the user asked to end the grant, its tokens are not exported, even while their revocation is pending.
        let keepsTokens = !(grant.state == .disconnected && grant.reason == .userRequest)
        let accessToken = keepsTokens ? try vault.openAccessToken(of: grant) : nil
        let refreshToken = keepsTokens ? try vault.openRefreshToken(of: grant) : nil
        var line = JSONLine()
        line.field("user_id", grant.userID)
        line.field("client_id", grant.clientID)
        if let accessToken, let stored = grant.accessToken {
            line.field("access_token", accessToken.reveal())
            line.field("token_type", stored.type)
            line.field("created_at", stored.obtainedAt.iso8601)
            line.field("expires_at", stored.expiresAt.iso8601)
            line.field("expires_in", (max(.zero, stored.expiresAt - stored.obtainedAt)).wholeMilliseconds / 1000)
        }
        if let refreshToken {
            line.field("refresh_token", refreshToken.reveal())
            line.fieldIfPresent("refresh_token_expires_at", grant.refreshToken?.expiresAt?.iso8601)
        }
        line.fieldIfPresent("scope", grant.scope.isEmpty ? nil : grant.scope)
        line.fieldIfPresent("google_user_id", grant.owner.googleUserID)
        line.fieldIfPresent("google_email", grant.owner.email)
        line.fieldIfPresent("google_name", grant.owner.name)
        if let isVerified = grant.owner.emailIsVerified { line.field("google_verified_email", isVerified) }
        line.field("state", grant.state.rawValue)
        line.fieldIfPresent("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        line.field("since", grant.since.iso8601)
        return line
    }
}

extension JSONLine {
    fileprivate mutating func fieldIfPresent(_ key: String, _ value: String?) {
        if let value { field(key, value) }
    }
}
