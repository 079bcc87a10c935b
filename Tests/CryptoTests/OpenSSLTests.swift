import Glibc
import Testing

@testable import Crypto

@Suite("OpenSSL at the end of the process")
struct OpenSSLTests {
    // The handlers of `atexit` run in the reverse order of their registration, so this one runs after OpenSSL's own, if
    // that is registered. OpenSSL then fetches no algorithm any more.
    @Test("is not cleaned up, because other threads may still use it", arguments: FirstUse.allCases)
    func exit(firstUse: FirstUse) async {
        await #expect(processExitsWith: .exitCode(0)) { [firstUse] in
            atexit {
                do throws(CryptoError) {
                    _ = try RSAPrivateKey.generate()
                } catch {
                    _exit(3)
                }
            }
            firstUse.run()
        }
    }

    enum FirstUse: String, CaseIterable, Codable {
        case digest, sealing, key, publicKey, pem

        func run() {
            switch self {
            case .digest: _ = Digest.sha256([])
            case .sealing: _ = try? RingKey.random()
            case .key: _ = try? RSAPrivateKey.generate()
            case .publicKey:
                _ = try? PublicKey(modulus: [UInt8](repeating: 0xff, count: 256), exponent: [1, 0, 1])
            case .pem: _ = try? RSAPrivateKey(pem: Secret("-----BEGIN PRIVATE KEY-----"))
            }
        }
    }
}
