package import Base
internal import Crypto
package import Storage

/// The JSON of a grant: a line of an import or an export, or a secret of AWS Secrets Manager.
extension ImportedGrant {
    /// The lifetime of a token whose JSON has none: that of Google's access tokens.
    private static let defaultLifetime: Duration = .seconds(3600)

    /// Parses a record of an import's input.
    package init(
        reading record: RecordSplitter.Record,
        clientIDs: [String],
        userID: String? = nil,
        connection: ConnectionID = .default,
        at now: Timestamp
    ) throws(InputError) {
        try self.init(
            reading: try record.members(),
            clientIDs: clientIDs,
            userID: userID,
            connection: connection,
            at: now
        )
    }

    /// Parses the members of the JSON.
    ///
    /// If only one client id is configured, it is used for JSON without one. `userID` is the user of JSON that does not
    /// name one, and `connection` the connection of JSON that does not name one.
    package init(
        reading members: [String: JSONValue],
        clientIDs: [String],
        userID: String? = nil,
        connection: ConnectionID = .default,
        at now: Timestamp
    ) throws(InputError) {
        let outer = RecordFields(members: members)
        let named = try outer.identifier("user_id")
        // The output of `aws secretsmanager get-secret-value`.
        guard let nested = members["SecretString"]?.string else {
            try self.init(from: outer, userID: named ?? userID, connection, clientIDs, at: now)
            return
        }
        guard let content = JSONValue.object(in: nested.utf8)?.object else {
            throw InputError("SecretString is not the text of a JSON object")
        }
        let inner = RecordFields(members: content)
        let innerUser = try inner.identifier("user_id")
        let nameUser = Self.userID(ofSecret: try outer.text("Name"))
        // What stands in the JSON wins over the secret's name, and that over the caller.
        let user = named ?? innerUser ?? nameUser ?? userID
        try self.init(from: inner, userID: user, connection, clientIDs, at: now)
    }

    /// Returns the user in the name of a secret, `gmail/user/{user_id}`.
    private static func userID(ofSecret name: String?) -> String? {
        name?.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init)
    }

    private init(
        from fields: RecordFields,
        userID: String?,
        _ connection: ConnectionID,
        _ clientIDs: [String],
        at now: Timestamp
    ) throws(InputError) {
        let userID = try RecordFields.checked(userID: userID)
        do throws(InputError) {
            try self.init(ofUser: userID, connection, from: fields, clientIDs, at: now)
        } catch {
            var problem = error
            problem.userID = userID
            throw problem
        }
    }

    private init(
        ofUser userID: String,
        _ connection: ConnectionID,
        from fields: RecordFields,
        _ clientIDs: [String],
        at now: Timestamp
    ) throws(InputError) {
        let recordedState = try Self.recordedState(in: fields)
        let createdAt = try fields.instant("created_at")
        let refreshToken = try fields.token("refresh_token")
        let lifetimes = (
            expiresAt: try fields.instant("refresh_token_expires_at"),
            span: try fields.span("refresh_token_expires_in")
        )
        // Zero means that the token does not expire, as in other servers' answers.
        let span = lifetimes.span.flatMap { $0 == .zero ? nil : $0 }
        let accessToken = try Self.accessToken(
            in: fields,
            createdAt: createdAt,
            isRefreshable: refreshToken != nil,
            at: now
        )
        guard refreshToken != nil || accessToken != nil || recordedState?.state.endsRefreshes == true else {
            throw InputError("refresh_token and access_token are both missing")
        }
        let googleUserID = try fields.identifier("google_user_id")
        let hasLeftAccount = recordedState?.reason == .accountMoved
        self.init(
            userID: userID,
            connection: try Self.connection(in: fields) ?? connection,
            clientID: try Self.clientID(in: fields, clientIDs),
            owner: Grant.Owner(
                // Two connections of one user never share an id.
                googleUserID: hasLeftAccount ? nil : googleUserID,
                email: try fields.text("google_email"),
                name: try fields.text("google_name"),
                emailIsVerified: try fields.boolean("google_verified_email")
            ),
            scope: try fields.scopes("scope"),
            refreshToken: refreshToken,
            bindingKeyID: try Self.bindingKeyID(in: fields),
            refreshTokenExpiresAt: lifetimes.expiresAt ?? span.map { min(createdAt ?? now, now) + $0 },
            accessToken: accessToken,
            recordedState: recordedState,
            obtainedAt: createdAt,
            labels: try fields.labels("labels")
        )
    }

    private static func connection(in fields: RecordFields) throws(InputError) -> ConnectionID? {
        guard let text = try fields.text("connection") else { return nil }
        guard let connection = ConnectionID(text) else { throw InputError("connection \(ConnectionID.rule)") }
        return connection
    }

    private static func bindingKeyID(in fields: RecordFields) throws(InputError) -> KeyID? {
        guard let text = try fields.text("binding_key") else { return nil }
        guard let id = KeyID(text) else { throw InputError("binding_key is not the eight digits of a key's id") }
        return id
    }

    private static func clientID(in fields: RecordFields, _ clientIDs: [String]) throws(InputError) -> String {
        guard let text = try fields.text("client_id") else {
            switch clientIDs.count {
            case 0: throw InputError("client_id is missing, and none is configured")
            case 1: return clientIDs[0]
            default: throw InputError("client_id is missing, and several are configured")
            }
        }
        do throws(InputError) {
            try InputText.checkText(text)
            return try InputText.clientID(text)
        } catch {
            throw InputError("client_id: \(error.message)")
        }
    }

    private static func recordedState(in fields: RecordFields) throws(InputError) -> RecordedState? {
        let since = try fields.instant("since")
        let code = try fields.text("reason")
        guard let name = try fields.text("state") else { return nil }
        guard let state = GrantState(rawValue: name) else {
            throw InputError("state must be one of \(GrantState.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        guard state != .active else {
            return RecordedState(state: state, reason: .none, since: since)
        }
        let reason = GrantReason(rawValue: code ?? "unknown")
        guard code == nil || reason.rawValue == code else {
            throw InputError("reason must be a code of lower-case letters, digits and underscores")
        }
        // A user that another system deleted might sign up here again, so only a deletion here is final.
        guard reason != .userDeleted else {
            return RecordedState(state: state, reason: .userRequest, since: since)
        }
        return RecordedState(state: state, reason: reason, since: since)
    }

    private static func accessToken(
        in fields: RecordFields,
        createdAt: Timestamp?,
        isRefreshable: Bool,
        at now: Timestamp
    ) throws(InputError) -> AccessToken? {
        let type = try fields.text("token_type", limit: 64) ?? "Bearer"
        let expiresAt = try fields.instant("expires_at")
        let statedLifetime = try fields.span("expires_in")
        guard type.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else {
            throw InputError("token_type is not visible ASCII")
        }
        guard let secret = try fields.token("access_token") else { return nil }
        let lifetime = statedLifetime ?? defaultLifetime
        let life: (obtainedAt: Timestamp, expiresAt: Timestamp)
        if let expiresAt {
            life = (obtained(createdAt, lifetime: lifetime, until: expiresAt, at: now), expiresAt)
        } else if createdAt == nil, statedLifetime == nil, isRefreshable {
            // The token's age is unknown and a refresh can replace it, so it counts as expired and is never vended.
            life = (now, now)
        } else {
            let obtainedAt = min(createdAt ?? now, now)
            life = (obtainedAt, obtainedAt + lifetime)
        }
        return AccessToken(
            secret: secret,
            obtainedAt: life.obtainedAt,
            expiresAt: life.expiresAt,
            type: type
        )
    }

    /// Returns the time at which a token of known expiry was obtained.
    ///
    /// `created_at` is used only if it is plausible: in some secrets it is the time of the first sign-in, and a
    /// lifetime that is far too long would cause a wrong due time.
    private static func obtained(
        _ createdAt: Timestamp?,
        lifetime: Duration,
        until expiresAt: Timestamp,
        at now: Timestamp
    ) -> Timestamp {
        if let createdAt, createdAt <= now, expiresAt >= createdAt {
            let difference = (expiresAt - createdAt) - lifetime
            if difference > .seconds(-2), difference < .seconds(2) { return createdAt }
        }
        return min(now, expiresAt - lifetime)
    }
}
