import Testing

@testable import Storage

@Suite("The claims of stored rotations")
struct RotationClaimsTests {
    @Test("The last eight are kept, in their order, and read back from their bytes")
    func kept() {
        var claims = RotationClaims()
        #expect(claims.bytes == nil && RotationClaims(bytes: nil) == claims)
        for claim in [7, 1, 2, 3, 1, 4, 5, 6, .max, -1] as [Int64] { claims.insert(claim) }
        #expect(!claims.contains(7) && claims.contains(1) && claims.contains(.max) && claims.contains(-1))
        #expect(claims.bytes?.count == 8 * RotationClaims.capacity)
        #expect(RotationClaims(bytes: claims.bytes) == claims)
        #expect(RotationClaims(bytes: (claims.bytes ?? []) + [1, 2, 3]) == claims)
    }
}
