import Base
import Crypto
package import Storage

/// What a handle names: a user, and one of the user's connections, if the handle names one.
///
/// Handles are opaque texts that name a user to one service, where plain user ids are not wanted. The worker stores
/// none: a handle is what it names, sealed with a key that is derived from the service's name and the hash of its
/// credential. So a handle ends with the credential, and is useless to any other service.
struct NamedUser: Hashable, Sendable {
    /// Between connection and user. No user id has a control character.
    private static let separator: Character = "\u{1f}"

    let userID: String
    /// `nil` for a handle that names none: then a request can.
    let connection: ConnectionID?

    init(userID: String, connection: ConnectionID? = nil) {
        self.userID = userID
        self.connection = connection
    }

    fileprivate var text: String {
        guard let connection else { return userID }
        return "\(connection)\(Self.separator)\(userID)"
    }

    fileprivate init?(_ text: String) {
        let parts = text.split(separator: Self.separator, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else {
            self.init(userID: text)
            return
        }
        guard let connection = ConnectionID(String(parts[0])) else { return nil }
        self.init(userID: String(parts[1]), connection: connection)
    }
}

extension Service {
    /// The prefix that distinguishes handles from user ids.
    static let handlePrefix = "rwh_"

    package func handle(of userID: String, connection: ConnectionID? = nil) throws -> String {
        let named = NamedUser(userID: userID, connection: connection)
        return Self.handlePrefix + Base64URL.encode(try handleKey.seal(named.text))
    }

    /// Returns what a handle names, or `nil` if it is not a handle of this service.
    func user(ofHandle handle: String) throws(CryptoError) -> NamedUser? {
        let digits = handle.dropFirst(Self.handlePrefix.count)
        guard handle.hasPrefix(Self.handlePrefix), let sealed = Base64URL.decode(digits) else { return nil }
        guard let text = try handleKey.open(sealed) else { return nil }
        return NamedUser(text)
    }

    private var handleKey: TextSealingKey { TextSealingKey(from: Secret(utf8: credentialHash), owner: name) }
}
