import Crypto
import Glibc
import HTTPClient
import Testing

@Suite("A client at the end of the process")
struct ProcessExitTests {
    // This handler runs after OpenSSL's own, as `OpenSSLTests` explains.
    @Test("keeps OpenSSL usable, because its thread may be in a TLS connection")
    func exit() async {
        await #expect(processExitsWith: .exitCode(0)) {
            atexit {
                do throws(CryptoError) {
                    _ = try RSAPrivateKey.generate()
                } catch {
                    _exit(3)
                }
            }
            _ = try HTTPClient()
        }
    }
}
