package import Base
internal import Storage

/// Parses the JSON of a grant: a line of an import or an export, or a secret of AWS Secrets Manager.
package struct GrantReader: Sendable {
    /// The configured client ids.
    ///
    /// If there is only one, it is used for JSON without a client id.
    private let clientIDs: [String]
    /// The user of JSON that does not name one.
    private let userID: String?

    /// The lifetime of a token whose JSON has none: that of Google's access tokens.
    private static let defaultLifetime: Duration = .seconds(3600)

    package init(clientIDs: [String], userID: String? = nil) {
        self.clientIDs = clientIDs
        self.userID = userID
    }

    package func grant(from members: [String: JSONValue], at now: Timestamp) throws(InputError) -> ImportedGrant {
        let outer = RecordFields(members: members)
        let named = try outer.identifier("user_id")
        // The output of `aws secretsmanager get-secret-value`.
        guard let nested = members["SecretString"]?.string else {
            return try grant(from: outer, userID: named ?? userID, at: now)
        }
        guard let content = JSONValue.object(in: nested.utf8)?.object else {
            throw InputError("SecretString is not the text of a JSON object")
        }
        let inner = RecordFields(members: content)
        let innerUser = try inner.identifier("user_id")
        let nameUser = Self.userID(ofSecret: try outer.text("Name"))
        return try grant(from: inner, userID: named ?? innerUser ?? nameUser ?? userID, at: now)
    }

    /// Returns the user in the name of a secret, `gmail/user/{user_id}`.
    private static func userID(ofSecret name: String?) -> String? {
        name?.split(separator: "/", omittingEmptySubsequences: false).last.map(String.init)
    }

    private func grant(
        from fields: RecordFields,
        userID: String?,
        at now: Timestamp
    ) throws(InputError) -> ImportedGrant {
        let userID = try Self.checked(userID: userID)
        do throws(InputError) {
            return try grant(ofUser: userID, from: fields, at: now)
        } catch {
            var problem = error
            problem.userID = userID
            throw problem
        }
    }

    private func grant(
        ofUser userID: String,
        from fields: RecordFields,
        at now: Timestamp
    ) throws(InputError) -> ImportedGrant {
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
        return ImportedGrant(
            userID: userID,
            clientID: try clientID(in: fields),
            owner: Grant.Owner(
                googleUserID: try fields.identifier("google_user_id"),
                email: try fields.text("google_email"),
                name: try fields.text("google_name"),
                emailIsVerified: try fields.boolean("google_verified_email")
            ),
            scope: try fields.scopes("scope"),
            refreshToken: refreshToken,
            refreshTokenExpiresAt: lifetimes.expiresAt ?? span.map { min(createdAt ?? now, now) + $0 },
            accessToken: accessToken,
            recordedState: recordedState,
            obtainedAt: createdAt
        )
    }

    /// Checks a user id by the rules of the command line, so that every stored user can be named there.
    package static func checked(userID: String?) throws(InputError) -> String {
        guard let userID, !userID.isEmpty else { throw InputError("user_id is missing") }
        guard userID.utf8.count <= RecordFields.maximumTextLength else {
            throw InputError(
                "user_id has \(userID.utf8.count) bytes; at most \(RecordFields.maximumTextLength) are allowed"
            )
        }
        guard !userID.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw InputError("user_id contains control characters")
        }
        guard !userID.holdsCredential else {
            throw InputError("user_id looks like a token or a secret (not shown)")
        }
        return userID
    }

    private func clientID(in fields: RecordFields) throws(InputError) -> String {
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

    private static func recordedState(in fields: RecordFields) throws(InputError) -> ImportedGrant.RecordedState? {
        let since = try fields.instant("since")
        let code = try fields.text("reason")
        guard let name = try fields.text("state") else { return nil }
        guard let state = GrantState(rawValue: name) else {
            throw InputError("state must be one of \(GrantState.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        guard state != .active else {
            return ImportedGrant.RecordedState(state: state, reason: .none, since: since)
        }
        let reason = GrantReason(rawValue: code ?? "unknown")
        guard code == nil || reason.rawValue == code else {
            throw InputError("reason must be a code of lower-case letters, digits and underscores")
        }
        // A user that another system deleted might sign up here again, so only a deletion here is final.
        guard reason != .userDeleted else {
            return ImportedGrant.RecordedState(state: state, reason: .userRequest, since: since)
        }
        return ImportedGrant.RecordedState(state: state, reason: reason, since: since)
    }

    private static func accessToken(
        in fields: RecordFields,
        createdAt: Timestamp?,
        isRefreshable: Bool,
        at now: Timestamp
    ) throws(InputError) -> ImportedGrant.AccessToken? {
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
        return ImportedGrant.AccessToken(
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
