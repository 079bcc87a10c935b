private import CGnuTLS
private import CMicroHTTPD

/// The libraries of the listeners that this process runs with.
package enum MicroHTTPLibrary {
    package static var version: String { unsafe String(cString: MHD_get_version()) }

    package static var versionOfGnuTLS: String {
        unsafe gnutls_check_version(nil).map { unsafe String(cString: $0) } ?? ""
    }
}
