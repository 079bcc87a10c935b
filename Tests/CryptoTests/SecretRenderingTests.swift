import Crypto
import Foundation
import Testing

/// Returns every printed form of a value.
func renderings(of value: Any) -> [String: String] {
    var printed = ""
    print(value, to: &printed)
    var debugPrinted = ""
    debugPrint(value, to: &debugPrinted)
    var dumped = ""
    dump(value, to: &dumped)
    var all = [
        "print": printed,
        "debugPrint": debugPrinted,
        "dump": dumped,
        "interpolation": "\(value)",
        "describing": String(describing: value),
        "reflecting": String(reflecting: value),
        "mirror": walk(Mirror(reflecting: value)),
        "format": String(format: "%@", "\(value)"),
    ]
    if let error = value as? any Error {
        all["localizedDescription"] = error.localizedDescription
        all["NSError"] = "\(error as NSError) \((error as NSError).userInfo)"
    }
    return all
}

private func walk(_ mirror: Mirror) -> String {
    let children = mirror.children.map { child in
        "\(child.label ?? "") \(child.value) \(walk(Mirror(reflecting: child.value)))"
    }
    return children.joined(separator: "\n") + (mirror.superclassMirror.map(walk) ?? "")
}

@Suite("A secret in printed values")
struct SecretRenderingTests {
    private static let token = "1//0e-not-to-be-seen"

    private struct Grant {
        var user = "visible-user"
        var token = Secret(SecretRenderingTests.token)
        var former: Secret? = Secret(SecretRenderingTests.token)
        var many = [Secret(SecretRenderingTests.token)]
        var named = ["visible-name": Secret(SecretRenderingTests.token)]
        var pair = (1, Secret(SecretRenderingTests.token))
        var result: Result<Secret, CryptoError> = .success(Secret(SecretRenderingTests.token))
    }

    private final class Holder {
        let token = Secret(SecretRenderingTests.token)
    }

    private enum Refusal: Error {
        case rejected(Secret, code: Int)
    }

    @Test("No rendering of a value shows the secret in it", arguments: ["alone", "struct", "class", "error"])
    func noRendering(kind: String) throws {
        let value: Any =
            switch kind {
            case "alone": Secret(Self.token)
            case "struct": Grant()
            case "class": Holder()
            default: Refusal.rejected(Secret(Self.token), code: 400)
            }
        let decimals = Self.token.utf8.prefix(6).map(String.init).joined(separator: ", ")
        for (way, text) in renderings(of: value) {
            #expect(!text.contains("not-to-be-seen"), "\(way) shows the secret")
            #expect(!text.contains(decimals), "\(way) shows the secret's bytes")
        }
    }

    @Test("The search finds a plain string, and values that are not secret still show")
    func searchWorks() {
        struct Careless {
            var token = SecretRenderingTests.token
        }
        for (way, text) in renderings(of: Careless()) {
            #expect(text.contains("not-to-be-seen"), "\(way) hides everything")
        }
        for (way, text) in renderings(of: Grant()) {
            #expect(text.contains("visible-user"), "\(way) hides everything")
            #expect(text.contains("<secret>"), "\(way) does not show that there is a secret")
        }
    }

    @Test("No encoder takes a secret")
    func noEncoder() {
        let secret: Any = Secret(Self.token)
        #expect(!(secret is any Encodable))
        #expect(!(secret is any Hashable))
        #expect(Mirror(reflecting: secret).children.isEmpty)
    }

    @Test("No rendering of a key ring or a sealed value shows a key or the bytes")
    func keyRing() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("0011aaff \(KeyText.counting)\n")
        let ring = try KeyRingFile.load(path: path)
        let sealed = try ring.seal(Secret(Self.token), for: SealContext(owner: 1, column: "token"))
        for (way, text) in renderings(of: (ring, sealed)) {
            #expect(!text.contains(KeyText.counting), "\(way) shows the key")
            #expect(!text.contains("4, 5, 6, 7, 8"), "\(way) shows the key's bytes")
            #expect(!text.contains("- 17\n"), "\(way) shows bytes")
        }
        #expect("\(sealed)" == "sealed by 0011aaff, \(sealed.bytes.count) bytes")
        #expect(String(reflecting: sealed) == "\(sealed)")
        #expect(Mirror(reflecting: sealed).children.isEmpty)
    }
}
