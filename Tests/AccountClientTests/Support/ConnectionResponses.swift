/// The backend's responses about connections.
enum ConnectionResponses {
    static let read = "https://www.googleapis.com/auth/gmail.readonly"
    static let send = "https://www.googleapis.com/auth/gmail.send"

    /// A connection, without an id as in `gmail_connection` if that is nil.
    static func connection(
        _ id: String? = nil,
        state: String = "active",
        reason: String? = nil,
        email: String = "a@gmail.com",
        scopes: [String] = []
    ) -> String {
        let member = id.map { #""id":"\#($0)","# } ?? ""
        let reason = reason.map { #""\#($0)""# } ?? "null"
        let scopes = scopes.map { #""\#($0)""# }.joined(separator: ",")
        return """
            {\(member)"state":"\(state)","reason":\(reason),"since":"2026-11-21T03:17:39Z","verified_at":null,
            "expires_at":"2026-11-28T03:17:39Z","google_email":"\(email)","granted_scopes":[\(scopes)],"added_later":1}
            """
    }

    /// The profile of a user with these scopes, or who never had a connection if that is nil.
    static func profile(isConnected: Bool, scopes: [String]?) -> String {
        let state = isConnected ? "active" : "disconnected"
        let reason: String? = isConnected ? nil : "invalid_grant"
        let former = scopes.map { connection(state: state, reason: reason, scopes: $0) }
        return profile(isConnected: isConnected, former: former)
    }

    /// The profile with the connections of a user, or without the list as an older backend sends it.
    static func profile(isConnected: Bool, former: String? = nil, connections: [String]? = nil) -> String {
        let list = connections.map { #","connections":[\#($0.joined(separator: ","))]"# } ?? ""
        return """
            {"message":"User profile retrieved successfully","code":200,"data":{"name":"","email":"a@example.com",
            "created_on":"2024-11-01","created_at":"2024-11-01T00:00:09Z","gmail_account_connected":\(isConnected),
            "gmail_connection":\(former ?? "null")\(list)}}
            """
    }

    static func list(_ connections: [String]) -> String {
        """
        {"message":"Connections retrieved successfully","code":200,
        "data":{"connections":[\(connections.joined(separator: ","))]}}
        """
    }

    /// The response to tokens for a connection.
    static func connected(_ connection: String, isSwitch: Bool = false, more: String = "") -> String {
        """
        {"message":"The Google account is connected","code":201,
        "data":{"connection":\(connection),"account_switch":\(isSwitch)\(more)}}
        """
    }

    /// The response to tokens for the route that knows one connection.
    static func stored(scope: String, more: String = "") -> String {
        """
        {"message":"Gmail OAuth tokens stored successfully!","code":201,"data":{"google_email":"a@gmail.com",
        "scope":"\(scope)","account_switch":false,"message":"First Gmail connection"\(more)}}
        """
    }
}
