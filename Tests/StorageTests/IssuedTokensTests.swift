import Base
import Crypto
import Testing

@testable import Storage

@Suite("Tokens that refreshes brought")
struct IssuedTokensTests {
    private func digest(_ number: Int) -> [UInt8] { IssuedTokens.digest(of: Secret("token \(number)")) }

    @Test("are known until they expire, up to a limit")
    func bounds() {
        var issued = IssuedTokens()
        #expect(issued.bytes == nil && IssuedTokens(bytes: nil) == issued)
        for number in 1...140 { issued.insert(digest(number), until: start + .seconds(3600), at: start) }
        #expect((1...140).filter { issued.contains(digest($0)) } == Array(13...140))
        #expect(IssuedTokens(bytes: issued.bytes) == issued)
        #expect(IssuedTokens(bytes: (issued.bytes ?? []) + [1, 2, 3]) == issued)
        issued.insert(digest(141), until: start + .seconds(9000), at: start + .seconds(3600))
        #expect((1...141).filter { issued.contains(digest($0)) } == [141])
    }

    @Test("are recorded at each success, without the app's own token")
    func life() throws {
        var grant = try Sample.grant(1)
        let tokens = RefreshedTokens(accessToken: try Sample.accessToken(""), digest: digest(1))
        _ = grant.refreshed(tokens, at: start) { _ in start + .seconds(3000) }
        #expect(grant.issuedTokens.contains(digest(1)) && !grant.issuedTokens.contains(digest(2)))
    }
}
