package import Storage

extension RefreshEngine {
    /// Revokes a grant at Google at once if a disconnect asked for it. Returns `true` if nothing is left to revoke.
    package func revokeNow(_ id: GrantID) async throws -> Bool {
        guard let grant = try await store.grant(id), grant.revocationAskedAt != nil else { return true }
        let (request, completions) = state.reserve([grant.id], dueBy: nil)
        _ = await claim(request)
        _ = await completions.first?.value
        return try await store.grant(grant.id)?.revocationAskedAt == nil
    }
}
