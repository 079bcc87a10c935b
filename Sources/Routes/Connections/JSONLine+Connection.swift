internal import Base
internal import Storage

extension JSONLine {
    /// Adds what the app learns of a connection, without its id.
    mutating func writeConnection(of grant: Grant) {
        field("state", grant.state.rawValue)
        fieldOrNull("reason", grant.reason == .none ? nil : grant.reason.rawValue)
        field("since", grant.since.iso8601Seconds)
        fieldOrNull("verified_at", grant.lastSuccessAt?.iso8601Seconds)
        fieldOrNull("expires_at", grant.refreshToken?.expiresAt?.iso8601Seconds)
        fieldOrNull("google_email", grant.owner.email)
        strings("granted_scopes", grant.scope.split(separator: " ").map(String.init))
    }

    mutating func writeConnectionWithID(of grant: Grant) {
        field("id", grant.connection.description)
        writeConnection(of: grant)
    }

    /// Adds all connections of a user.
    mutating func writeConnections(of grants: [Grant]) {
        objects("connections", grants) { grant, line in line.writeConnectionWithID(of: grant) }
    }
}
