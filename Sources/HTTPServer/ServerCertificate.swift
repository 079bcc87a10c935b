package import Base
private import CGnuTLS
package import Crypto

/// A certificate chain with its key, for a TLS server.
///
/// `@unchecked Sendable`: GnuTLS lets many sessions use the same credentials at once if they do not change, and nothing
/// here changes them after `init`.
@safe
package final class ServerCertificate: @unchecked Sendable {
    /// From when the server's own certificate is valid.
    package let validFrom: Timestamp

    /// When the server's own certificate expires.
    package let expiresAt: Timestamp

    private let credentials: gnutls_certificate_credentials_t

    /// Reads the contents of both files.
    ///
    /// The server's own certificate comes first in the chain, then the intermediate ones.
    package init(chain: [UInt8], key: Secret) throws(HTTPServerError) {
        var allocated: gnutls_certificate_credentials_t?
        let allocation = unsafe gnutls_certificate_allocate_credentials(&allocated)
        guard allocation == GNUTLS_E_SUCCESS, let credentials = unsafe allocated else {
            throw Self.failure(allocation)
        }
        do throws(HTTPServerError) {
            let validity = try Self.validity(ofFirstIn: chain)
            let result = unsafe Self.load(chain: chain, key: key, into: credentials)
            guard result >= 0 else {
                throw result == GNUTLS_E_CERTIFICATE_KEY_MISMATCH
                    ? HTTPServerError(code: .foreignKey, message: "the key does not belong to the first certificate")
                    : Self.badKey(result)
            }
            unsafe self.credentials = unsafe credentials
            validFrom = validity.from
            expiresAt = validity.to
        } catch {
            unsafe gnutls_certificate_free_credentials(credentials)
            throw error
        }
    }

    deinit {
        unsafe gnutls_certificate_free_credentials(credentials)
    }

    /// Makes a session present this certificate.
    ///
    /// The session must not outlive the certificate.
    func present(in session: UnsafeMutableRawPointer) -> Bool {
        unsafe gnutls_credentials_set(
            OpaquePointer(session),
            GNUTLS_CRD_CERTIFICATE,
            UnsafeMutableRawPointer(credentials)
        ) == GNUTLS_E_SUCCESS
    }

    private static func load(
        chain: [UInt8],
        key: Secret,
        into credentials: gnutls_certificate_credentials_t
    ) -> Int32 {
        key.withBytes { span in
            unsafe span.withUnsafeBytes { keyBytes in
                unsafe chain.withUnsafeBytes { chainBytes in
                    var chain = unsafe datum(of: chainBytes)
                    var key = unsafe datum(of: keyBytes)
                    return unsafe gnutls_certificate_set_x509_key_mem2(
                        credentials,
                        &chain,
                        &key,
                        GNUTLS_X509_FMT_PEM,
                        nil,
                        0
                    )
                }
            }
        }
    }

    private static func validity(ofFirstIn chain: [UInt8]) throws(HTTPServerError) -> (from: Timestamp, to: Timestamp) {
        var initialized: gnutls_x509_crt_t?
        let initialization = unsafe gnutls_x509_crt_init(&initialized)
        guard initialization == GNUTLS_E_SUCCESS, let certificate = unsafe initialized else {
            throw failure(initialization)
        }
        defer { unsafe gnutls_x509_crt_deinit(certificate) }
        let result = unsafe chain.withUnsafeBytes { bytes in
            var datum = unsafe datum(of: bytes)
            return unsafe gnutls_x509_crt_import(certificate, &datum, GNUTLS_X509_FMT_PEM)
        }
        guard result == GNUTLS_E_SUCCESS else { throw badCertificate(reason(result)) }
        let from = unsafe gnutls_x509_crt_get_activation_time(certificate)
        let to = unsafe gnutls_x509_crt_get_expiration_time(certificate)
        guard from != -1, to != -1 else { throw badCertificate("its dates cannot be read") }
        return (Timestamp(secondsSince1970: Int64(from)), Timestamp(secondsSince1970: Int64(to)))
    }

    private static func datum(of bytes: UnsafeRawBufferPointer) -> gnutls_datum_t {
        // GnuTLS only reads from this memory.
        let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return unsafe gnutls_datum_t(data: UnsafeMutablePointer(mutating: start), size: UInt32(clamping: bytes.count))
    }

    private static func failure(_ result: Int32) -> HTTPServerError {
        HTTPServerError(code: .cannotStart, message: "GnuTLS: \(reason(result))")
    }

    private static func badCertificate(_ reason: String) -> HTTPServerError {
        HTTPServerError(
            code: .badCertificate,
            message: "the file has no certificate in PEM that can be read (\(reason))"
        )
    }

    private static func badKey(_ result: Int32) -> HTTPServerError {
        HTTPServerError(
            code: .badKey,
            message: "the file has no key in PEM without a passphrase that can be read (\(reason(result)))"
        )
    }

    private static func reason(_ result: Int32) -> String {
        unsafe String(cString: gnutls_strerror(result))
    }
}
