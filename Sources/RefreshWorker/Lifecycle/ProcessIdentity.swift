private import Glibc

/// Who this process is.
enum ProcessIdentity {
    static var number: Int32 { getpid() }
}
