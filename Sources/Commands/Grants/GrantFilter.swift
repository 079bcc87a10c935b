import Base
import Crypto
import Storage
import Worker

/// The grants that `grants list` shows.
struct GrantFilter: Sendable {
    let state: GrantState?
    let reason: GrantReason?
    let clientID: String?
    let isExpired: Bool
    /// The key ring that must not open a token of the grant; `nil` if that does not matter.
    let vault: TokenVault?

    init(_ options: GrantListOptions, vault: TokenVault? = nil) {
        state = options.state.flatMap { GrantState(rawValue: $0) }
        reason = options.reason.map { GrantReason(rawValue: $0) }
        clientID = options.clientID
        isExpired = options.isExpired
        self.vault = vault
    }

    var selectsAll: Bool { state == nil && reason == nil && clientID == nil && !isExpired && vault == nil }

    func matches(_ grant: Grant, at now: Timestamp) throws(SealError) -> Bool {
        guard
            (state == nil || grant.state == state) && (reason == nil || grant.reason == reason)
                && (clientID == nil || grant.clientID == clientID) && (!isExpired || grant.isExpired(at: now))
        else { return false }
        guard let vault else { return true }
        return try !grant.opens(with: vault)
    }
}

extension Grant {
    /// `true` if the grant is connected and has no valid access token, as `ExpiredGrants` counts it.
    fileprivate func isExpired(at now: Timestamp) -> Bool {
        state.isConnected && (accessToken?.expiresAt ?? since) <= now
    }

    /// `true` if the key ring opens every token of the grant, or the grant has none.
    fileprivate func opens(with vault: TokenVault) throws(SealError) -> Bool {
        do throws(SealError) {
            _ = try vault.openRefreshToken(of: self)
            _ = try vault.openAccessToken(of: self)
            return true
        } catch {
            switch error {
            case .unknownKey, .damaged, .malformed: return false
            case .libraryFailure: throw error
            }
        }
    }
}
