import Base
import Crypto
import Glibc
import GoogleOAuth
import Records
import Storage

extension Command {
    /// `grants add USER`: stores one grant and replaces the connection's stored one.
    static let addGrant = Command(
        words: ["grants", "add"],
        summary: "store a user's grant from a refresh token",
        discussion: """
            Reads either a refresh token alone, or the JSON of a grant (access_token, refresh_token, expires_at, scope \
            and so on), from standard input or from a file. It is never an argument, because every user of the machine \
            can read those. A stored grant of the connection is replaced, unless a refresh has replaced this refresh \
            token.
            """,
        operands: [.user("the user of the grant, by the backend's id")],
        options: [
            OptionSpecification(
                "token-file",
                .file,
                "read the token or the JSON from this file instead of standard input"
            ),
            OptionSpecification(
                "client-id",
                .clientID,
                "the client id that the token was issued to; needed when several are configured"
            ),
            .connection,
            .json,
        ],
        settings: [.config, .database, .keyFile, .keyCommand, .logLevel],
        examples: [
            "refresh-worker grants add alice --token-file ./alice.token": "a refresh token kept in a file",
            "pass show google/alice | refresh-worker grants add alice": "from a password store",
        ],
        exitCodes: .ofDatabase(.badData, .inputUnreadable)
    ) { arguments, context, output in
        let user = arguments.operand
        let tokenFile = arguments["token-file"]
        let vault = try context.openVault()
        if tokenFile == nil, isatty(STDIN_FILENO) == 1 {
            Output.error.line("type or paste a refresh token, or the JSON of a grant; then Enter and Ctrl-D")
        }
        let input: Secret
        do {
            input = try await BlockingCallQueue(label: "refresh-worker.input").run {
                try tokenFile.map { try Secret.read(file: $0) } ?? Secret.read(descriptor: STDIN_FILENO)
            }
        } catch let error as FileError {
            throw CommandError(.inputUnreadable, "\(error)")
        }
        let added: ImportedGrant
        do throws(CommandError) {
            added = try ImportedGrant.read(
                input,
                forUser: user,
                connection: arguments.has("connection") ? arguments.connection : nil,
                clientID: arguments["client-id"],
                configured: context.configuration.clientIDs,
                at: context.time.now
            )
        } catch {
            throw CommandError(error.exitCode, "no grant of user \(DisplayedText(user)) was added: \(error.message)")
        }
        let store = try await context.openStore()
        let writer = ImportedGrantWriter(
            store: store,
            vault: vault,
            time: context.time,
            random: context.random,
            existing: .replace,
            refreshesAtOnce: true
        )
        do throws(InputError) {
            try writer.check(added)
        } catch {
            await store.close()
            throw CommandError(.badData, "no grant of user \(DisplayedText(user)) was added: \(error.message)")
        }
        let (outcome, stored) = try await WorkerHeartbeat(of: context, in: store, vault: vault).reporting {
            (
                try await writer.store([added]),
                try await store.grant(ofUser: user, connection: added.connection)
            )
        }
        let owner = "\(DisplayedText(user))\(added.connection.clause)"
        let verb: String
        switch outcome.first {
        case .keptEnded:
            throw CommandError(.userMustAct, "\(owner) \(GrantImport.endedGrant)")
        case .refused:
            throw CommandError(.userMustAct, "\(owner) was deleted and is not restored")
        case .accountConnected(let other):
            throw CommandError(.badData, "\(owner) \(GrantImport.connectedAccount(other))")
        case .replaced: verb = "replaced"
        case .kept: verb = "kept"
        case .stored, nil: verb = "added"
        }
        let due = stored?.dueAt.map { ", due \($0.distance(from: context.time.now))" } ?? ""
        output.answer("\(verb) \(owner): \(stored?.state.rawValue ?? "")\(due)") { line in
            line.field("result", verb)
            if let stored { stored.write(to: &line) }
        }
        return .success
    }
}

/// Parses the input of `grants add`: a refresh token alone, or the JSON of a grant.
extension ImportedGrant {
    static func read(
        _ input: Secret,
        forUser user: String,
        connection named: ConnectionID?,
        clientID: String?,
        configured clientIDs: [String],
        at now: Timestamp
    ) throws(CommandError) -> ImportedGrant {
        let text = input.reveal().trimmingWhitespace()
        guard !text.isEmpty else { throw CommandError(.badData, "the input is empty: give a token or a JSON object") }
        let allowedClientIDs = if let clientID { [clientID] } else { clientIDs }
        let connection = named ?? .default
        var grant: ImportedGrant
        if text.utf8.first == UInt8(ascii: "{") {
            grant = try readJSON(text, user: user, connection: connection, clientIDs: allowedClientIDs, at: now)
        } else {
            grant = try readToken(text, user: user, connection: connection, clientIDs: allowedClientIDs)
        }
        guard grant.userID.utf8.elementsEqual(user.utf8) else {
            throw CommandError(.badData, "user_id in the JSON names another user than the command line")
        }
        guard named == nil || grant.connection == named else {
            throw CommandError(.badData, "connection in the JSON names another one than the command line")
        }
        if let clientID { grant.clientID = clientID }
        return grant
    }

    private static func readJSON(
        _ text: String,
        user: String,
        connection: ConnectionID,
        clientIDs: [String],
        at now: Timestamp
    ) throws(CommandError) -> ImportedGrant {
        let record = RecordSplitter.Record(line: 1, content: .text(Array(text.utf8)))
        do throws(InputError) {
            return try ImportedGrant(
                reading: record,
                clientIDs: clientIDs,
                userID: user,
                connection: connection,
                at: now
            )
        } catch {
            throw CommandError(.badData, "the input is not a grant: \(error.message)")
        }
    }

    private static func readToken(
        _ text: String,
        user: String,
        connection: ConnectionID,
        clientIDs: [String]
    ) throws(CommandError) -> ImportedGrant {
        guard Token.isWellFormed(text) else {
            throw CommandError(
                .badData,
                "the input is neither one refresh token (visible ASCII, no blanks) nor the JSON of a grant"
            )
        }
        // https://developers.google.com/identity/protocols/oauth2#size
        guard !text.hasPrefix("ya29.") else {
            throw CommandError(.badData, "the input is an access token; a refresh token is needed")
        }
        guard clientIDs.count == 1 else {
            throw CommandError(
                .configuration,
                "\(clientIDs.isEmpty ? "no" : "more than one") client id is configured: give --client-id"
            )
        }
        return ImportedGrant(
            userID: user,
            connection: connection,
            clientID: clientIDs[0],
            refreshToken: Secret(text)
        )
    }
}

extension String {
    fileprivate func trimmingWhitespace() -> String {
        var rest = self[...]
        while rest.first?.isWhitespace == true { rest.removeFirst() }
        while rest.last?.isWhitespace == true { rest.removeLast() }
        return String(rest)
    }
}
