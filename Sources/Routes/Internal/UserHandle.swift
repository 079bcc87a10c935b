internal import Crypto

/// An opaque text that names a user to one service, where plain user ids are not wanted.
///
/// The worker stores no handles: a handle is the user's id, sealed with a key that is derived from the service's name
/// and the hash of its credential. So a handle ends with the credential, and is useless to any other service.
package enum UserHandle {
    /// The prefix that distinguishes handles from user ids.
    static let prefix = "rwh_"

    package static func make(of userID: String, for service: Service) throws -> String {
        prefix + Base64URL.encode(try key(of: service).seal(userID))
    }

    /// Returns the user of a handle; `nil` if it is not a handle of this service.
    static func userID(in handle: String, of service: Service) throws(SealError) -> String? {
        guard handle.hasPrefix(prefix), let sealed = Base64URL.decode(handle.dropFirst(prefix.count)) else {
            return nil
        }
        return try key(of: service).open(sealed)
    }

    private static func key(of service: Service) -> HandleKey {
        HandleKey(from: Secret(utf8: service.credentialHash), owner: service.name)
    }
}
