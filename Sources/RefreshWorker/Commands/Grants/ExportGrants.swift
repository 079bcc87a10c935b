import Base
import Crypto
import Storage

extension Command {
    /// `grants export --plaintext`: writes everything that `grants import` needs to import the grants elsewhere.
    static let exportGrants = Command(
        words: ["grants", "export"],
        summary: "write all grants as JSON lines",
        discussion: """
            Writes all grants with their states to standard output, in the form that grants import reads. The tokens \
            are in plain text, so --plaintext is required. To move a whole database sealed, use refresh-worker backup. \
            A grant whose tokens cannot be opened with the key ring is reported and left out, and the exit code is 78.
            """,
        options: [
            .toggle("plaintext", "confirm that the output contains usable tokens"),
            .toggle("json", "changes nothing: an export is JSON lines in any case"),
        ],
        settings: [.config, .database, .keyFile, .logLevel],
        examples: [
            "refresh-worker grants export --plaintext | age -r KEY > grants.jsonl.age":
                "encrypt the tokens before they reach the disk"
        ],
        exitCodes: .ofDatabase()
    ) { arguments, context in
        guard arguments.has("plaintext") else {
            throw CommandError(
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
        for try await page in GrantPages(store: store) {
            let exported = ExportedPage(page, opening: vault)
            for problem in exported.problems { Output.error.line("refresh-worker: \(problem)") }
            unreadable += exported.problems.count
            if !exported.text.isEmpty { try await output.run { Output.standard.write(exported.text) } }
        }
        await store.close()
        guard unreadable == 0 else {
            throw CommandError(
                .configuration,
                "\(unreadable) grants are not in the export, because the key ring does not open their tokens"
            )
        }
        return .success
    }
}

/// A page of grants as the export prints it.
struct ExportedPage {
    /// A line for each grant that can be opened, with its tokens.
    var text = ""
    /// A line for each that cannot.
    var problems: [String] = []

    init(_ grants: [Grant], opening vault: TokenVault) {
        for grant in grants {
            do throws(CryptoError) {
                text += try grant.exported(from: vault).text + "\n"
            } catch {
                problems.append("user \(DisplayedText(grant.userID)): a stored token cannot be opened: \(error)")
            }
        }
    }
}

extension Grant {
    /// Returns all fields that `grants import` reads, including the tokens.
    ///
    /// Unknown members are left out.
    fileprivate func exported(from vault: TokenVault) throws(CryptoError) -> JSONLine {
        // If the user asked to end the grant, its tokens are not exported, even while their revocation is pending.
        let keepsTokens = !(state == .disconnected && reason == .userRequest)
        let access = keepsTokens ? try vault.openAccessToken(of: self) : nil
        let refresh = keepsTokens ? try vault.openRefreshToken(of: self) : nil
        var line = JSONLine()
        line.field("user_id", userID)
        line.field("client_id", clientID)
        if let access, let accessToken {
            line.field("access_token", access.reveal())
            line.field("token_type", accessToken.type)
            line.field("created_at", accessToken.obtainedAt.iso8601)
            line.field("expires_at", accessToken.expiresAt.iso8601)
            let span = max(.zero, accessToken.expiresAt - accessToken.obtainedAt)
            line.field("expires_in", span.wholeMilliseconds / 1000)
        }
        if let refresh {
            line.field("refresh_token", refresh.reveal())
            line.fieldIfPresent("refresh_token_expires_at", refreshToken?.expiresAt?.iso8601)
        }
        line.fieldIfPresent("scope", scope.isEmpty ? nil : scope)
        line.fieldIfPresent("google_user_id", owner.googleUserID)
        line.fieldIfPresent("google_email", owner.email)
        line.fieldIfPresent("google_name", owner.name)
        if let isVerified = owner.emailIsVerified { line.field("google_verified_email", isVerified) }
        line.field("state", state.rawValue)
        line.fieldIfPresent("reason", reason == .none ? nil : reason.rawValue)
        line.field("since", since.iso8601)
        return line
    }
}

extension JSONLine {
    fileprivate mutating func fieldIfPresent(_ key: String, _ value: String?) {
        if let value { field(key, value) }
    }
}
