package import Base
package import Storage

/// A grant as JSON for programs: what `grants list`, `grants show` and the routes of administration say.
extension Grant {
    /// Adds all fields except the tokens.
    package func write(to line: inout JSONLine) {
        line.field("user_id", userID)
        line.field("connection", connection.description)
        line.field("state", state.rawValue)
        line.fieldOrNull("reason", reason == .none ? nil : reason.rawValue)
        line.field("since", since.iso8601)
        line.fieldOrNull("google_email", owner.email)
        line.fieldOrNull("scope", scope.isEmpty ? nil : scope)
        line.field("client_id", clientID)
        line.fieldOrNull("expires_at", accessToken?.expiresAt.iso8601)
        line.fieldOrNull("due_at", dueAt?.iso8601)
        line.fieldOrNull("last_success_at", lastSuccessAt?.iso8601)
        line.field("attempts", failures)
        line.field("generation", generation)
        line.field("grant", id.description)
        if !labels.isEmpty { labels.write(to: &line, as: "labels") }
    }

    /// Adds the same fields and the grant's warnings.
    package func writeWithWarnings(to line: inout JSONLine, at now: Timestamp) {
        write(to: &line)
        line.fieldOrNull("refresh_token_expires_at", refreshToken?.expiresAt?.iso8601)
        line.strings("warnings", GrantWarning.all(of: self, at: now).map(\.rawValue))
    }
}
