import Base
import Crypto

/// Handles: opaque texts that name a user to one service, where plain user ids are not wanted.
///
/// The worker stores no handles: a handle is the user's id, sealed with a key that is derived from the service's name
/// and the hash of its credential. So a handle ends with the credential, and is useless to any other service.
extension Service {
    /// The prefix that distinguishes handles from user ids.
    static let handlePrefix = "rwh_"

    package func handle(of userID: String) throws -> String {
        Self.handlePrefix + Base64URL.encode(try handleKey.seal(userID))
    }

    /// Returns the user of a handle, or `nil` if it is not a handle of this service.
    func userID(ofHandle handle: String) throws(CryptoError) -> String? {
        let digits = handle.dropFirst(Self.handlePrefix.count)
        guard handle.hasPrefix(Self.handlePrefix), let sealed = Base64URL.decode(digits) else { return nil }
        return try handleKey.open(sealed)
    }

    private var handleKey: TextSealingKey { TextSealingKey(from: Secret(utf8: credentialHash), owner: name) }
}
