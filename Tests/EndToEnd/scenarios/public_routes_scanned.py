"""A scan of the public routes finds nothing: headers, methods, errors and cookies, in success and in each refusal."""

from accounts import Accounts, user_token
from scan import SECRET, check_refused_methods, check_response, check_server, public_operations

# Bodies, with what makes each a bad one.
BODIES = [None, "{", "[]", '{"access_token": 1}', '{"refresh_token": "' + SECRET + '"}', "\x00" * 10, "x" * 200_000]


def scenario(fixture):
    accounts = Accounts(fixture)
    public = accounts.public
    checked = 0

    def checks(answer, name):
        nonlocal checked
        check_response(answer, name)
        checked += 1
        return answer

    # Success, whose bodies hold tokens.
    grant, other = fixture.sandbox.create(email="ada@gmail.com")[0], fixture.sandbox.create(email="eva@gmail.com")[0]
    ada = user_token("ada")
    checks(accounts.connect(grant, ada).expect(201), "a connection")
    checks(public.get("/v1/user/me", ada).expect(200), "the profile")
    answer = checks(public.post("/api/auth/mobile/google", {"access_token": other["access_token"]}), "a sign-in")
    tokens = answer.expect(200).json
    tokens = checks(public.post("/api/auth/refresh", {"refresh_token": tokens["refresh_token"]}), "a refresh").json
    checks(public.get("/api/auth/me", tokens["access_token"]).expect(200), "the session's user")
    checks(public.get("/api/auth/status", tokens["access_token"]).expect(200), "the session's state")
    checks(public.post("/api/auth/logout", {"refresh_token": tokens["refresh_token"]}).expect(200), "a log-out")

    # Each route refuses what is wrong.
    for operation in sorted(public_operations()):
        method, path = operation.split()
        for bearer in (None, SECRET, ada + "x"):
            for body in BODIES if method == "POST" else [None]:
                answer = public.call(method, path, body, bearer)
                assert answer.status >= 400 or path == "/api/auth/logout" or path == "/api/auth/status", (
                    f"{operation} refuses bearer {bearer!r} and body {str(body)[:30]!r}"
                )
                checks(answer, operation)
        check_refused_methods(public, path)

    # Other paths and methods, some as scanners guess them.
    for method, path in (
        ("GET", "/"), ("GET", "/robots.txt"), ("GET", "/.git/config"), ("GET", "/admin"), ("PUT", "/v1/user/me"),
        ("GET", "/v1/user/me?access_token=" + SECRET), ("GET", "/v1/../v1/user/me"), ("OPTIONS", "/v1/user/me"),
        ("GET", "/%00%ff"), ("GET", "/" + "x" * 20_000), ("GET", "/healthz"),
    ):
        check_server(public.call(method, path), f"{method} {path[:30]}")
    accounts.close()
    return f"{checked} responses"
