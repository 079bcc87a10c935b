import Base
import Crypto
import GoogleOAuth
import HTTPServer
import Storage
import Telemetry

/// What a request for a token demands, such as `?min_ttl=300&scope=openid`.
struct TokenVendingRequest: Sendable {
    static let defaultMinimumLife = 60
    static let maximumMinimumLife = 3600

    let minimumLife: Duration
    let scopes: [ScopeName]
    /// The connection of the user: the default one if the request names none.
    let connection: ConnectionID

    /// Parses a query. A name that is not known is refused: a misspelled `connection` would get the token of another
    /// account.
    init(_ query: [ServerRequest.Field]) throws(ServiceError) {
        try query.checkNames(["min_ttl", "scope", "connection"])
        connection = try query.connection
        minimumLife = try Self.minimumLife(in: query)
        scopes = try Self.scopes(in: query.filter { $0.name == "scope" }.map(\.value))
    }

    /// Parses scopes that are separated by spaces.
    init(scope: String?, minimumLife: Duration, connection: ConnectionID) throws(ServiceError) {
        self.connection = connection
        self.minimumLife = minimumLife
        scopes = try Self.scopes(in: [scope].compactMap(\.self))
    }

    private static func minimumLife(in query: [ServerRequest.Field]) throws(ServiceError) -> Duration {
        let values = query.filter { $0.name == "min_ttl" }.map(\.value)
        if values.isEmpty { return .seconds(defaultMinimumLife) }
        guard values.count == 1, let seconds = wholeSeconds(values[0]), seconds <= maximumMinimumLife else {
            throw .invalidRequest("min_ttl must be given once, as whole seconds from 0 to \(maximumMinimumLife)")
        }
        return .seconds(seconds)
    }

    private static func wholeSeconds(_ text: String) -> Int? {
        guard text.utf8.count <= 4, text.isDecimalNumber else { return nil }
        return Int(text)
    }

    private static func scopes(in texts: [String]) throws(ServiceError) -> [ScopeName] {
        var scopes: [ScopeName] = []
        var length = 0
        for text in texts {
            length += text.utf8.count + 1
            for part in text.split(separator: " ") {
                guard let scope = ScopeName(part) else {
                    throw .invalidRequest("scope contains an invalid character")
                }
                if !scopes.contains(scope) { scopes.append(scope) }
            }
            guard length <= MetricsLine.maximumScopes else {
                throw .invalidRequest("scope must not be longer than \(MetricsLine.maximumScopes) bytes")
            }
        }
        return scopes
    }

    static func rejectedToken(in body: [UInt8]) throws(ServiceError) -> Secret {
        guard let token = Token.required(JSONValue.object(in: body)?["access_token"]) else {
            throw .invalidRequest("the body must be a JSON object with the access_token that Google rejected")
        }
        return token
    }
}

extension [ServerRequest.Field] {
    /// The connection that a query names, or the default one.
    var connection: ConnectionID {
        get throws(ServiceError) {
            let texts = filter { $0.name == "connection" }.map(\.value)
            guard let text = texts.first else { return .default }
            guard texts.count == 1, let connection = ConnectionID(text) else {
                throw .invalidRequest("connection must be given once, as the id of a connection")
            }
            return connection
        }
    }
}
