internal import Base
internal import HTTPServer
internal import Storage
internal import Telemetry

/// The success responses of the PayPulse family: a message for people, the status, and data.
enum PayPulseResponse {
    static func success(
        status: Int = 200,
        _ message: String,
        data: (inout JSONLine) -> Void = { _ in }
    ) -> ServerResponse {
        .object(status: status) { line in
            line.field("message", message)
            line.field("code", status)
            line.object("data", data)
        }
    }

    static func stored(_ relation: ConnectionRules.Relation, email: String, scope: String) -> ServerResponse {
        success(status: 201, "Gmail OAuth tokens stored successfully!") { data in
            data.field("google_email", email)
            data.field("scope", scope)
            data.field("account_switch", relation.isSwitch)
            data.field("message", relation.message)
        }
    }

    /// Returns the user's profile with the state of the stored grant.
    static func profile(of user: User, grant: Grant?) -> ServerResponse {
        success("User profile retrieved successfully") { data in
            // The backend's own name wins over Google's.
            data.field("name", user.name.flatMap { $0.isEmpty ? nil : $0 } ?? grant?.owner.name ?? "")
            data.field("email", user.email ?? "")
            // PayPulse's own function returned the date alone, and the app shows it unchanged.
            data.field("created_on", user.createdAt.iso8601Date)
            data.field("gmail_account_connected", grant?.state.isConnected ?? false)
            guard let grant else { return data.null("gmail_connection") }
            data.object("gmail_connection") { $0.connection(grant) }
        }
    }
}

extension JSONLine {
    fileprivate mutating func connection(_ grant: Grant) {
        field("state", grant.state.rawValue)
        fieldOrNull("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        field("since", grant.since.iso8601Seconds)
        fieldOrNull("verified_at", grant.lastSuccessAt?.iso8601Seconds)
        fieldOrNull("google_email", grant.owner.email)
        array("granted_scopes") { scopes in
            for scope in grant.scope.split(separator: " ") { scopes.element(String(scope)) }
        }
    }
}
