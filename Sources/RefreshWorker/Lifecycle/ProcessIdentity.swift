private import Glibc

/// Who this process is.
enum ProcessIdentity {
    static var number: Int32 { getpid() }
    static var user: UInt32 { geteuid() }
}
