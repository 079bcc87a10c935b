package import Crypto
import Storage

@testable package import Scheduler

/// The calls about a grant, by its user: most tests are about users with one Google account.
extension RefreshEngine {
    package func freshToken(
        of userID: String,
        minimumLife: Duration = .zero,
        insteadOf rejected: Secret? = nil
    ) async throws -> VendedToken {
        guard let grant = try await store.grant(ofUser: userID, connection: .default) else {
            throw VendingError.unknownGrant
        }
        return try await freshToken(of: grant.id, minimumLife: minimumLife, insteadOf: rejected)
    }

    package func revokeNow(grantOf userID: String) async throws -> Bool {
        guard let grant = try await store.grant(ofUser: userID, connection: .default) else { return true }
        return try await revokeNow(grant.id)
    }
}
