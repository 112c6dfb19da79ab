<?php
// Creates a token with PHP 7.4 or later.
function encode(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

function make_token(array $claims, int $seconds = 3600): string
{
    $claims += ['iss' => getenv('ROSTRUM_KEY_ID'), 'exp' => time() + $seconds];
    $header = ['alg' => 'HS256', 'typ' => 'JWT'];
    $signed = encode(json_encode($header)) . '.' . encode(json_encode($claims, JSON_THROW_ON_ERROR));
    return $signed . '.' . encode(hash_hmac('sha256', $signed, getenv('ROSTRUM_SECRET'), true));
}

echo make_token(['sub' => 'ann', 'name' => 'Ann', 'role' => 'host', 'stream' => 'talk']), "\n";
