internal import Base
private import Glibc

/// Runs a system call, turns `-1` into an error with `errno`, and retries after `EINTR`.
@discardableResult
func systemCall<Result: SignedInteger>(_ name: String, _ body: () -> Result) throws(SystemCallError) -> Result {
    while true {
        let result = body()
        guard result == -1 else { return result }
        let code = errno
        guard code == EINTR else { throw SystemCallError(call: name, code: code) }
    }
}
