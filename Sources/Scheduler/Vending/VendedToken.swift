package import Base
package import Crypto
import Storage

/// A token for a caller.
package struct VendedToken: Sendable {
    package var accessToken: Secret
    package var type: String
    package var expiresAt: Timestamp
    package var scope: String
    /// `true` if the caller waited for a refresh that brought this token.
    package var isFresh: Bool
    /// The code of the failure that keeps the grant from being refreshed, or `nil` while its refreshes succeed.
    package var warning: String?
}

extension VendedToken {
    /// Opens the stored access token of a grant. If the grant is in `retrying`, its reason becomes the warning.
    init(of grant: Grant, vault: TokenVault, isFresh: Bool = false, warning: String? = nil) throws(VendingError) {
        let opened: Secret?
        do throws(CryptoError) {
            opened = try vault.openAccessToken(of: grant)
        } catch {
            if case .unknownKey = error, !vault.ring.isComplete { throw .unavailable(for: .keyRing) }
            throw .unreadable(error)
        }
        guard let stored = grant.accessToken, let opened else { throw .unavailable(for: .noAccessToken) }
        self.init(
            accessToken: opened,
            type: stored.type,
            expiresAt: stored.expiresAt,
            scope: grant.scope,
            isFresh: isFresh,
            warning: warning ?? (grant.state == .retrying ? grant.reason.rawValue : nil)
        )
    }
}
