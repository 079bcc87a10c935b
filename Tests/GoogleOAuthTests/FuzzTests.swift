import Base
import Crypto
import HTTPClient
import Testing

@testable import GoogleOAuth

@Suite("Mutated answers")
struct FuzzTests {
    private static let corpus: [(status: Int, body: String)] = [
        (200, #"{"access_token":"ya29.x","expires_in":3599,"scope":"openid email","token_type":"Bearer"}"#),
        (200, #"{"access_token":"a","refresh_token":"1//next","refresh_token_expires_in":604799,"id_token":"e.e.x"}"#),
        (200, #"{"access_token":"a","expires_in":1,"scope":"s","token_type":"Bearer","refresh_token":"1//n"}"#),
        (
            200,
            "{ \"expires_in\" : 10 ,\r\n\"scope\":\"s\",\"token_type\":\"Bearer\",\t\"access_token\":\"a\",\"x\":0 }\n"
        ),
        (200, #"{"access_token":7,"refresh_token":"1//next"}"#),
        (200, "<!DOCTYPE html><title>Sign in</title>"),
        (400, #"{"error":"invalid_client","error_description":"The OAuth client was not found."}"#),
        (400, #"{"error":"access_denied","error_description":"Account restricted","error_uri":"https://x"}"#),
        (401, #"{"error":"unauthorized_client","error_description":"Unauthorized"}"#),
        (403, "<HTML><HEAD><TITLE>User Rate Limit Exceeded</TITLE></HEAD></HTML>"),
        (400, #"{"error":"emm_app_verification_required: https://m.google.com/"}"#),
        (400, #"{"error":"invalid_request","nested":[[[{"a":[1,2.5e3,true,null,"\u00e9\n"]}]]]}"#),
    ]
    private static let pieces = [
        "\"", "\\", "{", "}", "[", "]", ",", ":", "null", "true", "-", "1e999", "\\ud800", "\\u0000", "é", "\u{0}",
        "\"error\":", "\"access_token\":", "\"refresh_token\":\"1//next\"", "invalid_", "grant", "expires_in",
    ]

    @Test("are never accepted as another answer, and never crash", arguments: [1, 2, 3, 4] as [UInt64])
    func mutations(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        for round in 0..<1500 {
            let (status, body) = Self.corpus[Int(random.nextBits() % UInt64(Self.corpus.count))]
            let bytes = Self.mutate(Array(body.utf8), by: random)
            let answer = ParsedRefreshResponse.reading(response(status, bytes), sent: [Secret(sentToken)])
            let comment: Comment = "seed \(seed), round \(round): \(String(decoding: bytes, as: UTF8.self))"

            if status == 200, let plain = Self.plain(bytes) {
                let body = JSONValue.object(in: bytes)
                let rotated = Token.optional(body?["refresh_token"])
                #expect(body != nil && body?["error"] == nil && rotated.isWellFormed, comment)
                let parsed = body.flatMap { TokenResponse($0, rotated: rotated.value) }
                #expect(parsed.map(Self.content) == Self.content(plain), comment)
            }
            switch answer.verdict {
            case .granted(let tokens):
                let token = JSONValue.object(in: bytes)?["access_token"]?.string
                #expect(status == 200 && token == tokens.accessToken.reveal(), comment)
                #expect(Token.isWellFormed(tokens.accessToken.reveal()), comment)
                #expect(tokens.lifetime > .zero && tokens.lifetime <= .seconds(400 * 86_400), comment)
            case .failed(.invalidGrant):
                #expect(JSONValue.object(in: bytes)?["error"]?.string == "invalid_grant", comment)
            default:
                break
            }
            if status == 200 {
                // A well-formed refresh token is returned if the answer parses, or is whole before the first error.
                let object = JSONValue.object(in: bytes) ?? JSONValue.partialObject(in: bytes)
                let rotated = object?["refresh_token"]?.string
                #expect(answer.verdict.rotated == rotated.flatMap { Token.isWellFormed($0) ? $0 : nil }, comment)
            }
            #expect((answer.text?.utf8.count ?? 0) <= 256, comment)
            #expect((1...64).contains(answer.verdict.code.utf8.count), comment)
        }
    }

    private static func plain(_ bytes: [UInt8]) -> TokenResponse? {
        HTTPBody(bytes).withBytes { TokenResponse(plain: $0) }
    }

    private static func content(_ tokens: TokenResponse) -> [String?] {
        [
            tokens.accessToken.reveal(), "\(tokens.lifetime)", tokens.type, tokens.scope, tokens.rotated?.reveal(),
            tokens.refreshTokenLifetime.map { "\($0)" }, tokens.idToken?.reveal(),
        ]
    }

    /// Applies one to four changes: to a byte, to a range, or by an insertion.
    private static func mutate(_ original: [UInt8], by random: SeededRandom) -> [UInt8] {
        func below(_ bound: Int) -> Int { Int(random.nextBits() % UInt64(max(bound, 1))) }
        var bytes = original
        for _ in 0...below(4) where !bytes.isEmpty {
            let index = below(bytes.count)
            switch below(6) {
            case 0: bytes[index] = UInt8(below(256))
            case 1: bytes[index] ^= 1 << UInt8(below(8))
            case 2: bytes.removeSubrange(index..<min(bytes.count, index + 1 + below(8)))
            case 3: bytes.insert(contentsOf: Array(pieces[below(pieces.count)].utf8), at: index)
            case 4: bytes.removeLast(bytes.count - index)
            default:
                bytes.insert(contentsOf: bytes[index..<min(bytes.count, index + below(40))], at: below(bytes.count))
            }
        }
        return bytes
    }
}
