private import CNGHTTP2

/// The nghttp2 that this process runs with.
package enum HTTP2Library {
    package static var version: String {
        guard let info = unsafe nghttp2_version(0) else { return "" }
        return unsafe String(cString: info.pointee.version_str)
    }
}
